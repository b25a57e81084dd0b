"""The faults: their words, what each does to a reply, and that they combine."""

import contextlib
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.answers import Answer, CallPiece, TextPiece
from mini_agent.core.errors import ConfigError
from mini_agent.core.profile import APIS, Api
from mini_agent.lab.families import play
from mini_agent.lab.fault_words import Plan, file_chunks, forms, in_order, parse, plan
from mini_agent.lab.faults import GARBAGE, apply, omissions
from mini_agent.lab.parts import head
from mini_agent.lab.playing import Ask
from mini_agent.lab.replies import Cut, Hold, Part, Pause, Repeat, Reply, Verbatim, event_stream, json_reply

FILES = {
    "a.txt": b"data: x\n\n",
    "b.txt": b"b'da'\nb\"ta: x\\n\"\n\nb'\\xff'\n",
    "c.txt": b"HTTP/1.1 200 OK\r\n\r\n",
    "d.txt": b"b'a'\nb'",
}
E1, E2, E3 = b"data: 1\n\n", b"data: 2\n\n", b"data: [DONE]\n\n"
STREAM = event_stream(E1, E2, E3)
WHOLE = json_reply({"a": 1})


def read(name: str) -> bytes:
    try:
        return FILES[name]
    except KeyError:
        raise ConfigError(f"no file {name}") from None


def spoiled(words: str, reply: Reply = STREAM, api: Api = "chat") -> Reply:
    return apply(reply, in_order(parse(words, read).drawn(1)), api)


def body(words: str, reply: Reply = STREAM) -> tuple[Part, ...]:
    return tuple(spoiled(words, reply).body)


def data(reply: Reply) -> bytes:
    return b"".join(part for part in reply.body if isinstance(part, bytes))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", (E1, E2, E3)),
        ("ok", (E1, E2, E3)),
        ("first=5", (Pause(5), E1, E2, E3)),
        ("pause=0.5", (E1, Pause(0.5), E2, Pause(0.5), E3, Pause(0.5))),
        ("pause=0.5@2", (E1, E2, Pause(0.5), E3)),
        ("pause=1@0", (Pause(1), E1, E2, E3)),
        ("cut@2", (E1, E2, Cut(), E3)),
        ("cut@0", (Cut(), E1, E2, E3)),
        ("cut@9", (E1, E2, E3)),
        ("reset@3", (E1, E2, E3, Cut(reset=True))),
        ("cut=4", (E1[:4], Cut())),
        ("cut=0", (b"", Cut())),
        ("reset=12", (E1, E2[:3], Cut(reset=True))),
        ("cut=999", (E1, E2, E3)),
        ("stall@1", (E1, Hold(), E2, E3)),
        ("keepalive=1", (Repeat(b": keep-alive\n\n", 1), E1, E2, E3)),
        ("keepalive=1@1", (E1, Repeat(b": keep-alive\n\n", 1), E2, E3)),
        ("garbage", (GARBAGE, E1, E2, E3)),
        ("garbage@2", (E1, E2, GARBAGE, E3)),
        ("garbage-after-end", (E1, E2, E3, GARBAGE)),
        ("bad-chunk@1", (E1, Verbatim(b"no size\r\n"), E2, E3)),
        ("split=10", (b"data: 1\n\nd", b"ata: 2\n\nda", b"ta: [DONE]", b"\n\n")),
        ("split=20 pause=1@1", (E1, Pause(1), b"data: 2\n\ndata: [DONE", b"]\n\n")),
        ("bytes=a.txt", (b"data: x\n\n",)),
        ("bytes=b.txt", (b"da", b"ta: x\n", b"\xff")),
    ],
)
def test_what_a_word_does_to_the_body(words: str, expected: Sequence[Part]) -> None:
    assert body(words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cut@1 stall@1 pause=1@1 garbage@1", (E1, GARBAGE, Pause(1), Hold(), Cut(), E2, E3)),
        ("pause=2@2 pause=1@2 pause=3@1", (E1, Pause(3), E2, Pause(2), Pause(1), E3)),
        ("garbage@1 pause=1@2", (E1, GARBAGE, E2, Pause(1), E3)),
        ("garbage@1 cut=12", (E1, GARBAGE[:3], Cut())),
        ("error-in-200@1 cut@2", None),
    ],
)
def test_words_combine_in_one_order_whatever_order_they_are_given_in(
    words: str, expected: Sequence[Part] | None
) -> None:
    assert expected is None or body(words) == expected
    names = [re.split("[=@]", word)[0] for word in words.split()]
    if len(set(names)) == len(names):
        assert body(" ".join(reversed(words.split()))) == body(words)


def test_words_for_the_head() -> None:
    reply = spoiled("content-type=text/plain header=X-A:b:c 'header=Retry-After: 7' retry-after=soon")
    assert reply.headers == {"content-type": "text/plain", "X-A": "b:c", "Retry-After": "7"}
    assert spoiled("header=Content-Type:x").headers == {"Content-Type": "x"}
    assert spoiled("delay=2").before == (Pause(2),)
    assert spoiled("cut delay=2 pause=1@1").before == (Pause(2), Cut())
    assert spoiled("stall").before == (Hold(),)
    assert spoiled("reset").before == (Cut(reset=True),)
    reply = spoiled("truncate-headers header=a:b delay=1")
    assert (reply.framing, reply.before) == ("raw", (Pause(1),))
    whole = head(spoiled("header=a:b"))
    assert reply.body == (whole[: len(whole) // 2], Cut())


@pytest.mark.parametrize("api", APIS)
def test_an_error_status_has_the_familys_error_and_a_success_keeps_its_body(api: Api) -> None:
    reply = spoiled("retry-after=30 status=503", api=api)
    assert (reply.status, reply.framing) == (503, "length")
    assert reply.headers == {"content-type": "application/json", "retry-after": "30"}
    assert json.loads(data(reply))["error"]["type"] == "overloaded_error"
    assert spoiled("status=201", api=api) == Reply(201, STREAM.headers, STREAM.body)


def test_a_page_a_file_and_a_whole_answer() -> None:
    page = spoiled("status=502 html")
    assert (page.status, page.headers) == (502, {"content-type": "text/html; charset=utf-8"})
    assert data(page).startswith(b"<!doctype html>")
    file = spoiled("status=500 bytes=a.txt")
    assert (file.status, file.body) == (500, (b"data: x\n\n",))
    assert spoiled("bytes=c.txt") == Reply(body=(FILES["c.txt"],), framing="raw")


@pytest.mark.parametrize("api", APIS)
def test_an_error_inside_a_success(api: Api) -> None:
    reply = spoiled("error-in-200@2", api=api)
    assert (reply.status, reply.body[:2]) == (200, (E1, E2))
    (event,) = reply.body[2:]
    assert isinstance(event, bytes)
    name, _, text = event.decode().rpartition("data: ")
    assert name == ("" if api == "chat" else "event: error\n")
    error = json.loads(text)
    assert (error.get("error") or error)["message"] == "the lab server was told to fail"
    assert error.get("type") == (None if api == "chat" else "error")
    unstreamed = spoiled("error-in-200", WHOLE, api)
    assert (unstreamed.status, "error" in json.loads(data(unstreamed))) == (200, True)


@pytest.mark.parametrize("api", APIS)
def test_words_that_change_how_an_answer_is_played(api: Api) -> None:
    faults = in_order(parse("no-done no-finish", read).drawn(1))
    assert omissions(faults) == {"finish", "end"}
    answer = Answer((TextPiece("x"), CallPiece(0, "c", "run", "{}")), "tool_use")
    full = play(answer, api, Ask())
    reply = play(answer, api, Ask(without=omissions(faults)))
    assert reply.body == full.body[: len(reply.body)]
    assert len(full.body) - len(reply.body) == (1 if api == "responses" else 2)


def test_an_unstreamed_answer_is_one_event() -> None:
    assert body("pause=1 garbage@1", WHOLE) == (b'{"a":1}', GARBAGE.removeprefix(b"data: "), Pause(1))
    waiting = spoiled("keepalive=0.1", WHOLE)
    assert (waiting.framing, waiting.body[0]) == ("chunked", Repeat(b"\n", 0.1))
    assert spoiled("bad-chunk", WHOLE).framing == "chunked"
    assert spoiled("cut=3", WHOLE).body == (b'{"a', Cut())


chunks = st.lists(st.binary(max_size=30), max_size=6).map(tuple)


@given(chunks, st.integers(1, 40) | st.just("random") | st.integers(0, 9).map(lambda seed: f"random:{seed}"))
def test_split_bytes_are_the_same_bytes(parts: tuple[bytes, ...], how: Any) -> None:
    reply = spoiled(f"split={how}", event_stream(*parts))
    pieces = [part for part in reply.body if isinstance(part, bytes)]
    assert b"".join(pieces) == b"".join(parts)
    if isinstance(how, int):
        assert all(len(piece) == how for piece in pieces[:-1])
    assert reply.body == spoiled(f"split={how}", event_stream(*parts)).body


@given(chunks, st.integers(1, 9))
def test_packed_bytes_unpack_to_the_same_piece_by_piece(parts: tuple[bytes, ...], size: int) -> None:
    for words in ("gzip", f"gzip split={size}"):
        reply = spoiled(words, event_stream(*parts))
        assert reply.headers["content-encoding"] == "gzip"
        assert zlib.decompress(data(reply), wbits=31) == b"".join(parts)
    unpacker = zlib.decompressobj(wbits=31)
    for part, given_part in zip(spoiled("gzip", event_stream(*parts)).body, parts, strict=False):
        assert isinstance(part, bytes)
        assert unpacker.decompress(part) == given_part  # each is there as soon as it is sent


def test_packed_signs_of_life_can_be_unpacked_any_number_of_times() -> None:
    unpacker = zlib.decompressobj(wbits=31)
    first, flushed, alive, *_ = body("gzip keepalive=1@1")
    assert isinstance(first, bytes)
    assert isinstance(flushed, bytes)
    assert isinstance(alive, Repeat)
    assert unpacker.decompress(first + flushed) == E1
    assert unpacker.decompress(alive.data * 3) == b": keep-alive\n\n" * 3


@given(chunks, st.integers(0, 100))
def test_a_cut_after_bytes_is_exact(parts: tuple[bytes, ...], limit: int) -> None:
    reply = spoiled(f"cut={limit}", event_stream(*parts))
    total = sum(map(len, parts))
    assert data(reply) == b"".join(parts)[:limit]
    assert (Cut() in reply.body) == (limit < total or (limit == total and bool(parts)))


EVERY = [form for form in forms() if form != "then"]


@given(st.lists(st.sampled_from(EVERY), max_size=5), st.data())
def test_any_words_combine(wanted: list[str], drawn: st.DataObject) -> None:
    values = {"CODE": "503", "SECONDS": "1", "EVENT": "2", "BYTES": "3", "SEED": "7", "SHARE": "0.5"}
    values |= {"FILE": "a.txt", "TYPE": "a/b", "VALUE": "5", "NAME:5": "a:b"}
    words = []
    for form in wanted:
        word = form
        for name, value in values.items():
            word = word.replace(name, value)
        word = word.replace("|random[:7]", "")
        whole = re.sub(r"[\[\]]", "", word)
        if "cut" in form or "reset" in form:
            whole = whole.replace("=3", "")
        words.append(drawn.draw(st.sampled_from([whole, re.sub(r"\[.*?\]", "", word)])))
    faults = in_order(parse(" ".join(words), read).drawn(1))
    for reply in (STREAM, WHOLE, Reply(body=(b"x",), framing="raw")):
        for api in APIS:
            head(apply(reply, faults, api))


@given(st.text() | st.lists(st.sampled_from([*forms(), "=", "@", " ", "'", "1"])).map("".join))
def test_any_text_is_faults_or_one_clear_error(spec: str) -> None:
    with contextlib.suppress(ConfigError):
        plan(spec, read)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("statsu=503", ("statsu", "'status'")),
        ("status=503 paus=1", ("paus", "'pause'")),
        ("frobnicate", ("frobnicate", "there are: then, ok, rate, no-finish")),
        ("status", ("status", "needs a value", "status=CODE")),
        ("status=", ("needs a value",)),
        ("status=abc", ("'abc'", "100 to 999")),
        ("status=99", ("'99'",)),
        ("pause=x", ("'x'", "pause=SECONDS[@EVENT]")),
        ("pause=-1", ("'-1'",)),
        ("pause=nan", ("'nan'",)),
        ("pause=inf", ("'inf'",)),
        ("pause=1@x", ("'x'",)),
        ("cut@", ("''",)),
        ("cut@-1", ("'-1'",)),
        ("cut=3@4", ("bytes or events",)),
        ("html=5", ("more in it",)),
        ("html@5", ("more in it",)),
        ("garbage=1", ("more in it",)),
        ("split=0", ("'0'",)),
        ("split=often", ("'often'",)),
        ("rate=2", ("'2'", "share")),
        ("rate=x", ("'x'",)),
        ("header=x", ("'x'", "no header")),
        ("'header=a b:c'", ("no header",)),
        ("'header=a:b\r\nc: d'", ("no header",)),
        ("bytes=none", ("no file none",)),
        ("bytes=d.txt", ("line 2",)),
        ("'status=503", ("closing quotation",)),
        ("=", ("no fault ''",)),
    ],
)
def test_a_wrong_word_is_one_line_that_names_it(spec: str, words: Sequence[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse(spec, read)
    assert all(word in str(raised.value) for word in words), str(raised.value)
    assert "\n" not in str(raised.value)


def test_then_separates_requests_and_the_last_step_stays() -> None:
    steps = plan("status=503 retry-after=1 then cut@1 then ok", read)
    assert [[named.text for named in steps.at(number)] for number in (1, 2, 3, 4)] == [
        ["status=503", "retry-after=1"],
        ["cut@1"],
        [],
        [],
    ]
    assert [named.text for named in plan("html", read).at(5)] == ["html"]
    assert plan("", read).at(1) == ()
    with pytest.raises(ConfigError, match="'then' is for successive requests"):
        parse("html then ok", read)


def shares(steps: Plan) -> list[bool]:
    return [bool(steps.at(number)) for number in range(1, 401)]


def test_a_rate_is_a_share_of_requests_the_same_for_the_same_seed() -> None:
    drawn = shares(plan("rate=0.3:7 status=503", read))
    assert 80 < sum(drawn) < 160
    assert shares(plan("rate=0.3:7 html", read)) == drawn
    assert shares(plan("rate=0.3 html", read)) != drawn
    assert shares(plan("rate=0 html", read)) == [False] * 400
    assert shares(plan("rate=1 html", read)) == [True] * 400


@given(st.lists(st.binary(min_size=1), min_size=1))
def test_a_file_of_literals_is_exact_chunks_and_any_other_file_is_one(pieces: list[bytes]) -> None:
    literals = "\n".join(map(repr, pieces)).encode()
    assert file_chunks(literals) == tuple(pieces)
    assert file_chunks(b"x" + literals) == (b"x" + literals,)
    assert file_chunks(b"") == (b"",)
