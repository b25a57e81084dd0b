"""Lines of a journal: records come back as they were, without secrets; whatever else is in a file harms nothing."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_lives import HEADER, RECORDS, RESUMED, answered, at, begun, call, ended, lives, ran, written

from mini_agent.core.events import BackendToolStarted, Notice, ReasoningCompleted, ToolStarted
from mini_agent.core.messages import Reasoning, Text, ToolCall
from mini_agent.core.redact import redact, without_keys
from mini_agent.record.lines import Reader, encode, mend
from mini_agent.record.rebuild import rebuild
from mini_agent.record.records import Checkpoint

SECRET = 'quo"te\\secret'
KEY = "sk-0123456789abcdef0123456789abcdef"


def journal_text(text):
    return without_keys(text, [SECRET])


def back(record, clean=journal_text):
    line = encode(record, clean)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    (again,) = Reader([line])
    return again, line.decode()


@given(RECORDS)
def test_s1_every_record_comes_back_as_it_was(record):
    assert back(record)[0] == record


@pytest.mark.parametrize(
    "text", [SECRET, f"\\{SECRET}\\", f'"{SECRET}"', f"tail\\{KEY}", f"\n{KEY}\n", f"\ud83d{SECRET}"]
)
@pytest.mark.parametrize("clean", [journal_text, lambda text: redact(text, [SECRET])])
def test_t7_secrets_go_from_wherever_they_are_and_the_line_stays_whole(text, clean):
    arguments = {text: [text, {"a": text}], "password": "x"}
    for record in (
        Notice(t=1.0, level="info", text=text, parse_error=text),
        ToolStarted(t=1.0, call_id="c", name="echo", arguments=arguments),
        BackendToolStarted(**at(), id="b", name="search", input=[text]),
        answered(Text(text), Reasoning(text), ToolCall("c", "echo", arguments)),
        Checkpoint(t=1.0, messages=(answered(Text(text)).response.message,)),
    ):
        again, line = back(record, clean)
        assert type(again) is type(record)
        assert KEY not in line
        assert json.dumps(SECRET)[1:-1] not in line
        assert "[redacted]" in line


def test_w7_what_a_provider_wants_back_comes_back_exactly():
    thought = Reasoning("hm", field="f", signature=f"sig {KEY}", encrypted=f"enc {KEY}", id=f"rs {KEY}")
    asked = ToolCall(f"call {KEY}", "echo", {}, extra={"seal": KEY})
    record = answered(thought, asked)
    assert back(record)[0] == record
    sealed = ReasoningCompleted(**at(), index=0, signature=KEY)
    assert back(sealed)[0] == sealed


def test_source_code_comes_back_unchanged():
    code = 'def login(token: identifier, secret="password1234"):\n    return {"api_key": "0123456789"}\n'
    for record in (
        ran("c", code),
        answered(ToolCall("c", "write_file", {"content": code, "token": "identifier"})),
    ):
        assert back(record)[0] == record


def test_t7_a_log_reads_a_value_together_with_its_name():
    record = ToolStarted(
        t=1.0, call_id="c", name="x", arguments={"api_key": "0123456789", "path": "0123456789"}
    )
    again, _ = back(record, redact)
    assert again.arguments == {"api_key": "[redacted]", "path": "0123456789"}


BROKEN = [
    b"\0" * 50,
    b"garbage \xff\xfe",
    b'{"type":"tool_finished","call_id":',
    b'{"type":"tool_finished","call_id":1}',
    b"[]",
    b"null",
    b'{"t":1}',
    b'{"type":7}',
    b"[" * 100_000,
    b"",
]


@pytest.mark.parametrize("line", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_record_is_skipped_and_counted(line):
    lines = [encode(begun(), str), line + b"\n", encode(ended(), str)]
    reader = Reader(lines)
    assert list(reader) == [begun(), ended()]
    assert (reader.broken, reader.unknown) == (1, 0)


def test_records_of_later_versions_are_read_over():
    line = b'{"type":"draft","t":1.0,"text":"half a mess"}\n'
    more = b'{"type":"turn_started","t":1.0,"prompt":"go","new_field":[1]}\n'
    reader = Reader([encode(HEADER, str), line, more, encode(RESUMED, str)])
    assert [type(record).__name__ for record in reader] == ["Header", "TurnStarted", "Resumed"]
    assert (reader.broken, reader.unknown) == (0, 1)
    assert reader.headers == [HEADER, RESUMED]


def mended(path, data):
    path.write_bytes(data)
    with path.open("rb+", buffering=0) as file:
        mend(file)
    return path.read_bytes()


WHOLE = encode(begun("é 😀"), str)


@pytest.mark.parametrize("before", [b"", WHOLE, b"\0\0\n", b"x" * 70_000 + b"\n"], ids=range(4))
def test_a_torn_last_line_is_cut_off_at_any_byte_and_nothing_before_it(tmp_path, before):
    for place in range(len(WHOLE) - 1):
        assert mended(tmp_path / "j", before + WHOLE[:place]) == before
    assert mended(tmp_path / "j", before + WHOLE[:-1]) == before + WHOLE
    assert mended(tmp_path / "j", before + WHOLE) == before + WHOLE


@pytest.mark.parametrize("rest", [b"\0" * 300_000, b'{"type":"x","y":"' + b"z" * 200_000])
def test_a_long_torn_end_is_cut_off_too(tmp_path, rest):
    assert mended(tmp_path / "j", WHOLE * 3 + rest) == WHOLE * 3
    assert mended(tmp_path / "j", rest) == b""


def test_a_long_last_line_that_is_whole_stays(tmp_path):
    line = encode(ran("c", "z" * 500_000), str)
    assert mended(tmp_path / "j", WHOLE + line) == WHOLE + line
    assert mended(tmp_path / "j", WHOLE + line[:-1]) == WHOLE + line


@given(lives(), st.sampled_from(BROKEN), st.data())
def test_a_damaged_line_loses_no_other(tmp_path_factory, records, damage, data):
    path = written(tmp_path_factory.mktemp("damaged") / "s.jsonl", records)
    lines = path.read_bytes().splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines) - 1))
    others = lines[:place] + lines[place + 1 :]
    reader = Reader([*lines[:place], damage + b"\n", *lines[place + 1 :]])
    assert rebuild(reader) == rebuild(Reader(others))
    assert reader.broken == 1


def test_numbers_beyond_64_bits_and_deep_arguments_are_kept():
    deep = value = {}
    for _ in range(150):
        value["a"] = value = {}
    record = answered(call("c", big=2**70, deep=deep, none=None, yes=True, half=0.5))
    assert msgspec.to_builtins(back(record)[0]) == msgspec.to_builtins(record)
