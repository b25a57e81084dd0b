"""Faults over real sockets: for a whole server, for one request, in a script; and what the server records of rules."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from lab_client import connected, post, posted
from lab_histories import BODIES
from test_lab_rules import TALK

from mini_agent.core.answers import Answer, CallPiece, ReasoningPiece, TextPiece
from mini_agent.core.errors import ConfigError
from mini_agent.core.profile import APIS, Api
from mini_agent.lab.families import FAMILIES
from mini_agent.lab.server import Faulty, LabServer, LabThread

ANSWER = Answer((TextPiece("one"), TextPiece("two"), TextPiece("three")))


def forever(request: Any) -> Answer:
    return ANSWER


def body(api: Api, **more: Any) -> dict[str, Any]:
    return {**BODIES[api](TALK), **more}


def statuses(answers: list[httpx.Response]) -> list[int]:
    return [answer.status_code for answer in answers]


async def asked(lab: LabServer, count: int, **more: Any) -> list[httpx.Response]:
    return [await post(lab, {"stream": True}, **more) for _ in range(count)]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("prefix", ["/v1", "", "/some/where"])
async def test_the_path_asks_for_the_family(api: Api, prefix: str) -> None:
    async with LabServer(forever) as lab, httpx.AsyncClient(trust_env=False) as client:
        url = f"http://127.0.0.1:{lab.port}{prefix}{FAMILIES[api].path}"
        whole = (await client.post(url, json=body(api, stream=False))).json()
        kind = {"chat": "chat.completion", "responses": "response", "messages": "message"}[api]
        assert whole.get("object", whole.get("type")) == kind
        stream = await client.post(url, json=body(api, stream=True))
        assert stream.headers["content-type"] == "text/event-stream"
        assert "three" in stream.text
        assert lab.violations == ["request 1: stream_options is for streams only"] * (api == "chat")


async def test_a_plan_goes_over_successive_posts_and_several_plans_act_together() -> None:
    async with LabServer(forever, faults=["status=503 then ok", "header=x-a:1 then ok"]) as lab:
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{lab.base_url}/models")).status_code == 200
        first, second, third = await asked(lab, 3)
        assert statuses([first, second, third]) == [503, 200, 200]
        assert (first.headers["x-a"], "x-a" in second.headers) == ("1", False)


async def test_a_rate_is_a_share_of_the_requests() -> None:
    async with (
        LabServer(forever, faults=["rate=0.5 status=503"]) as lab,
        LabServer(forever, faults=["rate=0.5 status=503"]) as twin,
    ):
        found = statuses(await asked(lab, 20))
        assert {200, 503} == set(found)
        assert statuses(await asked(twin, 20)) == found


async def test_a_request_asks_for_faults_by_query_and_by_header() -> None:
    async with LabServer(forever) as lab:
        by_query = await post(lab, path="/chat/completions?fault=status%3D503+retry-after%3D30&key=secret")
        assert (by_query.status_code, by_query.headers["retry-after"]) == (503, "30")
        twice = await post(lab, path="/responses?fault=status=404&fault=header=x-a:1")
        assert (twice.status_code, twice.headers["x-a"]) == (404, "1")
        by_header = await post(
            lab, {"stream": True}, headers={"x-lab-fault": "content-type=text/plain garbage"}
        )
        assert by_header.headers["content-type"] == "text/plain"
        assert by_header.text.startswith('data: {"lab": garbage\n\n')
        wrong = await post(lab, headers={"x-lab-fault": "statsu=503"})
        assert wrong.status_code == 400
        assert "did you mean 'status'?" in wrong.json()["error"]["message"]
        assert (await post(lab)).status_code == 200
        assert lab.requests[0].path == "/v1/chat/completions"


async def test_the_answers_of_a_script_have_faults_of_their_own() -> None:
    script = [Faulty(ANSWER, "status=503"), Faulty(ANSWER, "no-done no-finish"), ANSWER]
    async with LabServer(script) as lab:
        busy, cut, whole = await asked(lab, 3)
        assert busy.status_code == 503
        assert ("three" in cut.text, "finish_reason" in cut.text, "[DONE]" in cut.text) == (True, True, False)
        assert '"stop"' not in cut.text
        assert whole.text.endswith("data: [DONE]\n\n")


async def test_a_wrong_plan_is_refused_at_once_and_a_wrong_script_is_told() -> None:
    with pytest.raises(ConfigError, match="'status'"):
        LabServer(faults=["statsu=5"])
    async with LabServer([Faulty(ANSWER, "statsu=5")]) as lab:
        assert "'status'" in (await post(lab)).text


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        ("cut", b""),
        ("reset", None),
        ("cut@0", b"head"),
        ("cut@2", b"one"),
        ("cut=5", b"head"),
        ("stall", b""),
        ("stall@0", b"head"),
        ("stall@2", b"one"),
        ("first=60", b"head"),
        ("delay=60", b""),
        ("pause=60@2", b"one"),
        ("keepalive=60@1", b"head"),
        ("truncate-headers", b"HTTP/1.1 "),
    ],
)
async def test_what_arrives_before_silence_or_the_end(fault: str, end: bytes | None) -> None:
    """A silence is one in which the client leaves before the end: no test waits for it to pass."""
    async with LabServer(forever, faults=[fault]) as lab, connected(lab) as client:
        client.writer.write(posted({"stream": True}))
        if end is None:
            with pytest.raises(ConnectionResetError):
                await client.reader.read()
            return
        silent = fault.startswith(("stall", "first", "delay", "pause", "keepalive"))
        if end == b"head":
            assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        elif end:
            await client.reader.readuntil(end)
        await lab.until(lambda lab: lab.requests)
        if silent:
            assert lab.disconnects == []
            await client.leave()
            await lab.until(lambda lab: lab.disconnects)
        else:
            rest = await client.reader.read()
            assert (b"two" in rest, b"three" in rest, bool(rest) and fault == "cut") == (False, False, False)


async def test_broken_http() -> None:
    async with LabServer(
        forever, faults=["truncate-headers then bad-chunk@2 then header=content-length:99999"]
    ) as lab:
        for _ in range(2):
            with pytest.raises(httpx.RemoteProtocolError):
                await post(lab, {"stream": True})
        with pytest.raises(httpx.RemoteProtocolError):
            await post(lab, {"stream": False}, headers={"connection": "close"})


@pytest.mark.parametrize(
    "words",
    ["split=7", "split=random:3", "gzip", "gzip split=1", "pause=0 gzip split=random", "first=0 delay=0"],
)
async def test_what_does_not_change_the_bytes_changes_nothing(words: str) -> None:
    async with LabServer(forever) as lab:
        for stream in (True, False):
            plain = await post(lab, {"stream": stream})
            spoiled = await post(lab, {"stream": stream}, headers={"x-lab-fault": words})
            assert plain.text == spoiled.text
            assert "three" in plain.text


async def test_signs_of_life_without_end_and_packed() -> None:
    async with (
        LabServer(forever, faults=["keepalive=0@1 gzip"]) as lab,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        async with client.stream("POST", f"{lab.base_url}/chat/completions", json={"stream": True}) as answer:
            came = ""
            async for text in answer.aiter_text():
                came += text
                if came.count(": keep-alive\n\n") > 3:
                    break
        assert came.startswith("data: {")
        await lab.until(lambda lab: lab.disconnects)


async def test_exact_chunks_come_from_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "chunks.txt").write_bytes(b"b'data: \\xf0\\x9f'\nb'\\x98\\x80\\n\\n'\n")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    (folder / "raw").write_bytes(b"HTTP/1.1 299 Odd\r\ncontent-length: 2\r\n\r\nhi")
    name = folder / "chunks.txt"
    async with LabServer(forever, faults=[f"'bytes={name}'"]) as lab, connected(lab) as client:
        await client.ask(posted({"stream": True}, headers="connection: close\r\n"))
        assert await client.reader.read() == b"8\r\ndata: \xf0\x9f\r\n4\r\n\x98\x80\n\n\r\n0\r\n\r\n"
    async with LabServer(forever, files=folder) as lab:
        raw = await post(lab, headers={"x-lab-fault": "bytes=raw"})
        assert (raw.status_code, raw.text) == (299, "hi")
        for outside in ("../secret.txt", str(tmp_path / "secret.txt"), "nowhere", ".", "chunks.txt\0"):
            refused = await post(lab, path=f"/responses?fault=%22bytes={outside.replace(chr(0), '%00')}%22")
            assert refused.status_code == 400
            assert "secret" not in refused.text.replace("secret.txt", "")
    async with LabServer(forever) as lab:
        assert "no folder" in (await post(lab, headers={"x-lab-fault": "bytes=raw"})).text


async def test_rules_that_are_broken_are_recorded_and_the_answer_comes() -> None:
    async with LabServer(forever) as lab:
        for api in APIS:
            assert (await post(lab, body(api, stream=True), FAMILIES[api].path)).status_code == 200
        assert lab.violations == []
        broken = body("chat", stream=True)
        del broken["messages"][4]
        assert (await post(lab, broken)).status_code == 200
        assert lab.violations == [
            "request 4: messages[2].tool_calls[1]: call call_2 has no result before messages[4]"
        ]
        assert (await post(lab, path="/elsewhere")).status_code == 200
        assert len(lab.violations) == 1


@pytest.mark.parametrize("api", APIS)
async def test_strict_refuses_what_breaks_a_rule(api: Api) -> None:
    async with LabServer(forever, strict=True) as lab:
        assert (await post(lab, body(api, stream=True), FAMILIES[api].path)).status_code == 200
        refused = await post(lab, {"model": ""}, FAMILIES[api].path)
        assert refused.status_code == 400
        assert "model is missing" in refused.json()["error"]["message"]
        assert refused.json()["error"]["type"] == "invalid_request_error"


async def test_as_deepseek_it_always_thinks_and_wants_it_back() -> None:
    call = Answer((CallPiece(0, "c1", "read", "{}"),), "tool_use")
    async with LabServer([call, call], deepseek=True) as lab:
        request: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        message = (await post(lab, request)).json()["choices"][0]["message"]
        thought = message.pop("reasoning_content")
        assert thought
        request["messages"] += [message, {"role": "tool", "tool_call_id": "c1", "content": "x"}]
        await post(lab, request)
        assert lab.violations == ["request 2: messages[1]: the reasoning_content must be passed back"]


async def test_with_a_thinking_budget_every_message_thinks() -> None:
    async with LabServer([ANSWER, ANSWER, Answer((ReasoningPiece("hm"),))]) as lab:
        thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        kinds = []
        for more in ({}, thinking, thinking):
            answer = await post(lab, more, "/messages")
            kinds.append([block["type"] for block in answer.json()["content"]])
        assert kinds == [["text"], ["thinking", "text"], ["thinking"]]


async def test_reasoning_comes_encrypted_where_that_is_asked_for() -> None:
    async with LabServer([Answer((ReasoningPiece("hm"),))] * 2) as lab:
        for include in ([], ["reasoning.encrypted_content"]):
            (item,) = (await post(lab, {"include": include}, "/responses")).json()["output"]
            assert ("encrypted_content" in item) == bool(include)


async def test_the_log_has_a_line_for_each_request_and_keeps_keys_out() -> None:
    lines: list[str] = []
    async with LabServer(forever, faults=["status=503 retry-after=1 then ok"], log=lines.append) as lab:
        await post(lab, {"stream": True, "model": "m"}, "/messages?key=secret", {"x-api-key": "secret"})
        async with connected(lab) as client:
            client.writer.write(posted(body("chat")) + b"nonsense\r\n\r\n")
            await client.reader.read()
    assert lines == [
        "1: POST /v1/messages stream -> 503 status=503 retry-after=1",
        "1: broken rule: max_tokens is missing",
        "1: broken rule: messages is no list, or an empty one",
        "2: POST /v1/chat/completions stream -> 200",
        "what came is no HTTP/1.1 request: not enough values to unpack (expected 3, got 1)",
    ]


async def test_the_log_says_that_a_client_left() -> None:
    lines: list[str] = []
    async with LabServer(forever, log=lines.append, faults=["stall@1"]) as lab:
        async with connected(lab) as client:
            await client.ask(posted(body("chat")))
        await lab.until(lambda lab: lab.disconnects)
    assert lines[-1] == "1: the client left before the end of the answer"


async def test_only_so_much_is_remembered() -> None:
    async with LabServer(forever, keep=2) as lab:
        for _ in range(4):
            await post(lab)
        assert len(lab.requests) == 2
        assert [each.split(":")[0] for each in lab.violations] == ["request 4"] * 2
    async with LabServer([ANSWER] * 3, keep=1) as lab:
        assert statuses(await asked(lab, 4)) == [200, 200, 200, 400]


def test_a_thread_has_faults_and_rules_too() -> None:
    with LabThread(forever, faults=["status=503"], deepseek=True) as lab:
        answer = httpx.post(f"{lab.base_url}/responses", json={"model": "m"}, trust_env=False)
        assert answer.status_code == 503
        assert lab.violations == ["request 1: input is neither a text nor a list of items, or empty"]


async def test_many_clients_at_once_have_each_their_own_fault() -> None:
    async with LabServer(forever) as lab, httpx.AsyncClient(trust_env=False) as client:
        url = f"{lab.base_url}/chat/completions"
        codes = [500 + number for number in range(20)]
        answers = await asyncio.gather(
            *(
                client.post(url, json={}, headers={"x-lab-fault": f"status={code} split=5 delay=0.001"})
                for code in codes
            )
        )
        assert statuses(answers) == codes
        assert all(json.loads(answer.text)["error"] for answer in answers)
