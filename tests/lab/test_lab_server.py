"""The lab server over real sockets: what it is told to say is what arrives, to the byte."""

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from deepseek_stream import ARGUMENTS, CHUNKS, REASONING, TEXT, UNSTREAMED, streamed
from lab_client import connected, post, posted

from mini_agent.core.answers import Answer, ReasoningPiece, TextPiece, call_pieces
from mini_agent.core.messages import Usage
from mini_agent.lab.replies import (
    Cut,
    Hold,
    Part,
    Pause,
    Reply,
    chat_json,
    chat_stream,
    error,
    event_stream,
)
from mini_agent.lab.requests import LabRequest
from mini_agent.lab.server import LabServer, LabThread, Say

ANSWER = Answer(
    (
        ReasoningPiece("hm"),
        TextPiece("Gu"),
        TextPiece("ten Tag \u2713"),
        *call_pieces(0, "c1", "read_file", '{"path": "a"}'),
        *call_pieces(1, "c2", "read_file", '{"path": "b"}'),
    ),
    "tool_use",
    Usage(input_tokens=7, output_tokens=5, reasoning_tokens=1),
)
LONG_S = 60
"""A pause no test waits out."""


def events(text: str) -> list[Any]:
    """The decoded events of a body, the end mark as it is."""
    datas = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]
    return [data if data == "[DONE]" else json.loads(data) for data in datas]


async def test_each_part_is_one_http_chunk_with_its_exact_bytes() -> None:
    parts = (b"data: \xf0\x9f", b"\x98\x80\n\n", b"\0\xff")
    async with LabServer([event_stream(*parts)]) as lab, connected(lab) as client:
        assert b"transfer-encoding: chunked" in await client.ask(posted({}, headers="connection: close\r\n"))
        assert await client.reader.read() == (
            b"8\r\ndata: \xf0\x9f\r\n4\r\n\x98\x80\n\n\r\n2\r\n\0\xff\r\n0\r\n\r\n"
        )


async def test_an_empty_part_does_not_end_the_body() -> None:
    async with LabServer([event_stream(b"a", b"", b"b")]) as lab:
        assert (await post(lab)).content == b"ab"


async def test_parts_with_a_pause_between_arrive_apart() -> None:
    reply = event_stream(b"a", Pause(0.02), b"b", framing="close")
    async with LabServer([reply]) as lab, connected(lab) as client:
        assert (
            await client.ask() == b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream"
        )
        assert await client.reader.read(9) == b"a"
        assert await client.reader.read(9) == b"b"
        assert await client.reader.read() == b""


async def test_statuses_and_headers_go_out_as_given() -> None:
    reply = Reply(599, {"X-Odd": "\u00e4 b", "Retry-After": "1"}, (b"x",), "length")
    async with LabServer([reply]) as lab, connected(lab) as client:
        lines = (await client.ask()).split(b"\r\n")
        assert lines[0] == b"HTTP/1.1 599 "
        assert set(lines[1:]) == {b"content-length: 1", "x-odd: \u00e4 b".encode(), b"retry-after: 1"}


async def test_a_content_length_can_lie() -> None:
    reply = Reply(200, {"Content-Length": "100"}, (b"short", Cut()), "length")
    async with LabServer([reply]) as lab:
        with pytest.raises(httpx.RemoteProtocolError):
            await post(lab)


async def test_raw_framing_adds_nothing() -> None:
    async with LabServer([Reply(body=(b"SSH-2.0-x\r\n",), framing="raw")]) as lab, connected(lab) as client:
        client.writer.write(posted({}))
        assert await client.reader.read() == b"SSH-2.0-x\r\n"


async def test_answers_come_in_order_over_one_connection_or_several() -> None:
    async with LabServer([error(503, "busy"), error(429, "slow", {"retry-after": "2"}), ANSWER]) as lab:
        async with httpx.AsyncClient(trust_env=False) as client:
            first = await client.post(f"{lab.base_url}/a", json={})
            second = await client.post(f"{lab.base_url}/b", json={})
        third = await post(lab)
        assert [reply.status_code for reply in (first, second, third)] == [503, 429, 200]
        assert first.json()["error"]["message"] == "busy"
        assert second.headers["retry-after"] == "2"
        assert [request.connection for request in lab.requests] == [1, 1, 2]


async def test_after_the_last_answer_nothing_more_is_given() -> None:
    async with LabServer([ANSWER]) as lab:
        await post(lab)
        late = await post(lab)
        assert late.status_code == 400
        assert "script is over" in late.json()["error"]["message"]


async def test_requests_are_recorded_whole() -> None:
    async with LabServer([ANSWER, ANSWER]) as lab:
        await post(lab, {"model": "m", "stream": True})
        async with connected(lab) as client:
            await client.ask(posted([], headers="X-Key: 1\r\n").replace(b"[]", b"{]"))
        first, second = lab.requests
        assert (first.method, first.path) == ("POST", "/v1/chat/completions")
        assert first.headers["content-type"] == "application/json"
        assert first.json == {"model": "m", "stream": True}
        assert json.loads(first.body) == first.json
        assert first.arrived <= second.arrived <= asyncio.get_running_loop().time()
        assert (second.json, second.body, second.headers["x-key"]) == (None, b"{]", "1")
        assert lab.disconnects == []


async def test_a_chunked_request_body_is_joined() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'{"a'
        yield b'": 1}'

    async with LabServer([ANSWER]) as lab:
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(lab.base_url, content=body())
        assert lab.requests[0].json == {"a": 1}


@pytest.mark.parametrize("data", [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n"])
async def test_what_is_no_request_is_refused(data: bytes) -> None:
    async with LabServer([]) as lab, connected(lab) as client:
        assert await client.ask(data) != b""
        assert lab.requests == []


async def test_an_answer_is_streamed_where_a_stream_is_asked_for() -> None:
    async with LabServer([ANSWER, ANSWER]) as lab:
        stream = await post(lab, {"stream": True})
        whole = await post(lab, {"stream": False})
        assert stream.headers["content-type"] == "text/event-stream"
        assert whole.headers["content-type"] == "application/json"
        *chunks, done = events(stream.text)
        assert done == "[DONE]"
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        message = whole.json()["choices"][0]["message"]
        assert (
            "".join(delta.get("content", "") for delta in deltas) == message["content"] == "Guten Tag \u2713"
        )
        assert [delta["reasoning_content"] for delta in deltas if "reasoning_content" in delta] == ["hm"]
        assert message["reasoning_content"] == "hm"
        assert chunks[-1]["usage"] == whole.json()["usage"]
        assert chunks[-1]["usage"]["total_tokens"] == 12
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
        assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)


def test_a_streamed_call_is_opened_once_and_goes_on_by_index() -> None:
    body = b"".join(part for part in chat_stream(ANSWER).body if isinstance(part, bytes)).decode()
    calls = [
        call
        for chunk in events(body)[:-1]
        for call in chunk["choices"][0]["delta"].get("tool_calls", [])
        if call["index"] == 1
    ]
    assert calls[0] == {
        "index": 1,
        "id": "c2",
        "type": "function",
        "function": {"name": "read_file", "arguments": ""},
    }
    assert all(set(call) == {"index", "function"} for call in calls[1:])
    assert "".join(call["function"]["arguments"] for call in calls) == '{"path": "b"}'


def test_an_unstreamed_answer_without_words_has_no_content_and_no_usage() -> None:
    (body,) = chat_json(Answer((), "max_tokens")).body
    assert isinstance(body, bytes)
    decoded = json.loads(body)
    assert decoded["choices"][0]["message"] == {"role": "assistant", "content": None}
    assert decoded["choices"][0]["finish_reason"] == "length"
    assert "usage" not in decoded


def test_an_error_can_be_a_message_an_object_or_bytes() -> None:
    assert error(503, {"detail": "x"}).body == (b'{"detail":"x"}',)
    assert error(502, b"<html>", {"content-type": "text/html"}) == Reply(
        502, {"content-type": "text/html"}, (b"<html>",), "length"
    )


async def test_a_script_can_be_a_function_of_the_request() -> None:
    def script(request: LabRequest) -> Say:
        return error(418, request.path)

    async with LabServer(script) as lab:
        assert (await post(lab)).json()["error"]["message"] == "/v1/chat/completions"


def broken(request: LabRequest) -> Say:
    raise ZeroDivisionError(request.path)


@pytest.mark.parametrize("script", [broken, [None]])
async def test_a_broken_script_is_told_to_the_test(script: Any) -> None:
    with pytest.raises((ZeroDivisionError, TypeError)):
        async with LabServer(script) as lab:
            assert (await post(lab)).status_code == 400


async def test_the_failure_of_a_script_does_not_hide_that_of_the_test() -> None:
    with pytest.raises(KeyError):  # noqa: PT012  it is raised on leaving
        async with LabServer(broken) as lab:
            await post(lab)
            raise KeyError


@pytest.mark.parametrize("framing", ["chunked", "close"])
async def test_a_cut_ends_the_connection_after_what_came_before(framing: Any) -> None:
    async with LabServer([event_stream(b"half", Cut(), b"never", framing=framing)]) as lab:
        async with connected(lab) as client:
            await client.ask()
            assert (await client.reader.read()).endswith(b"half" if framing == "close" else b"half\r\n")
        assert lab.disconnects == []


async def test_a_reset_is_seen_as_one() -> None:
    async with LabServer([event_stream(b"half", Pause(0.02), Cut(reset=True))]) as lab:
        async with connected(lab) as client:
            await client.ask()
            assert await client.reader.readuntil(b"half\r\n")
            with pytest.raises(ConnectionResetError):
                await client.reader.read()
        assert lab.disconnects == []


@pytest.mark.parametrize("silence", [Hold(), Pause(LONG_S)])
@pytest.mark.parametrize("framing", ["chunked", "raw"])
async def test_a_client_that_goes_away_in_a_silence_is_noticed(silence: Part, framing: Any) -> None:
    async with LabServer([event_stream(b"x", silence, b"y", framing=framing), ANSWER]) as lab:
        async with connected(lab) as client:
            client.writer.write(posted({}))
            await client.reader.readuntil(b"x")
            await lab.until(lambda lab: lab.requests)
            assert lab.disconnects == []
            await client.leave()
            await lab.until(lambda lab: lab.disconnects)
        assert lab.disconnects == lab.requests
        assert (await post(lab)).status_code == 200


async def test_a_client_that_goes_away_from_an_endless_answer_is_noticed() -> None:
    async with LabServer([event_stream(*[b"x" * 65536] * 200)]) as lab, connected(lab) as client:
        await client.ask()
        client.writer.transport.abort()
        await lab.until(lambda lab: lab.disconnects)


async def test_a_client_that_stops_at_the_end_mark_has_not_gone_early() -> None:
    async with LabServer([ANSWER, ANSWER]) as lab:
        async with connected(lab) as client:
            await client.ask(posted({"stream": True}))
            await client.reader.readuntil(b"[DONE]")
            await client.leave()
        await post(lab)
        assert lab.disconnects == []


@pytest.mark.parametrize(
    "reply",
    [event_stream(b"x", Hold()), event_stream(b"x" * 10_000_000), Reply(body=(Hold(),), framing="raw")],
)
async def test_closing_waits_for_nobody(reply: Reply) -> None:
    async with LabServer([reply]) as lab:
        reader, writer = await asyncio.open_connection("127.0.0.1", lab.port)
        idle = await asyncio.open_connection("127.0.0.1", lab.port)
        writer.write(posted({}))
        await lab.until(lambda lab: lab.requests)
    writer.transport.abort()
    idle[1].transport.abort()
    del reader
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_until_waits_for_several() -> None:
    async with LabServer([ANSWER, ANSWER]) as lab, asyncio.TaskGroup() as tasks:
        tasks.create_task(lab.until(lambda lab: len(lab.requests) == 2))
        tasks.create_task(post(lab))
        tasks.create_task(post(lab))


async def test_without_a_script_the_demo_model_answers() -> None:
    function = {"name": "read_file", "description": "", "parameters": {}}
    body: dict[str, Any] = {
        "stream": False,
        "tools": [{"type": "function", "function": function}],
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "read a.txt"}]},
        ],
    }
    async with LabServer() as lab:
        message = (await post(lab, body)).json()["choices"][0]["message"]
        (call,) = message["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"path": "a.txt"}
        result = {"role": "tool", "tool_call_id": call["id"], "content": "milk\neggs"}
        body["messages"] += [message, result]
        second = (await post(lab, body)).json()["choices"][0]["message"]
        assert "2 lines" in second["content"]
        result["content"] = "Error: there is no a.txt"
        third = (await post(lab, body)).json()["choices"][0]["message"]
        assert "did not work" in third["content"]
        async with httpx.AsyncClient(trust_env=False) as client:
            models = (await client.get(f"{lab.base_url}/models")).json()
            assert [model["id"] for model in models["data"]] == ["lab"]
            nothing = await client.get(f"{lab.base_url}/else")
            assert nothing.status_code == 404
            assert "GET /models" in nothing.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 100_000,
        b"null",
        b'{"messages": 1, "tools": {}, "max_tokens": "x"}',
        b'{"messages": [1, {"role": "tool"}, {"role": "assistant", "tool_calls": [{}, 2]}], "tools": [{}]}',
    ],
)
async def test_without_a_script_nothing_in_a_body_breaks_it(body: bytes) -> None:
    async with LabServer() as lab, httpx.AsyncClient(trust_env=False) as client:
        reply = await client.post(f"{lab.base_url}/chat/completions", content=body)
        assert reply.status_code == 200


async def test_the_deepseek_stream_is_what_it_should_be() -> None:
    async with LabServer([streamed()]) as lab:
        text = (await post(lab)).text
    assert text.encode() == b"".join(CHUNKS)
    assert text.count(": keep-alive\n\n") == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in events(text)[:-1]]
    calls = [call["function"]["arguments"] for delta in deltas for call in delta.get("tool_calls", [])]
    assert calls == ["", ARGUMENTS[:9], ARGUMENTS[9:]]
    assert json.loads("".join(calls)) == {"path": "a.go"}
    message = json.loads(UNSTREAMED)["choices"][0]["message"]
    assert message["content"] == "".join(delta.get("content") or "" for delta in deltas) == TEXT
    assert deltas[0]["reasoning_content"] == message["reasoning_content"] == REASONING


def ask_plainly(lab: LabThread, *, read: bool = True) -> http.client.HTTPConnection:
    address = urlsplit(lab.base_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    connection.request("POST", f"{address.path}/chat/completions", b"{}")
    if read:
        connection.getresponse().read()
    return connection


def test_in_a_thread_it_serves_a_test_without_a_loop() -> None:
    with LabThread([ANSWER, event_stream(b"x", Hold())]) as lab:
        ask_plainly(lab).close()
        assert len(lab.requests) == 1
        connection = ask_plainly(lab, read=False)
        lab.until(lambda server: len(server.requests) == 2)
        assert lab.disconnects == []
        connection.close()
        lab.until(lambda server: server.disconnects)
        assert lab.disconnects == lab.requests[1:]


def test_in_a_thread_waiting_has_an_end() -> None:
    with LabThread([]) as lab, pytest.raises(TimeoutError):
        lab.until(lambda server: server.requests, timeout_s=0.01)


def test_in_a_thread_a_broken_script_is_told_to_the_test() -> None:
    with pytest.raises(ZeroDivisionError), LabThread(broken) as lab:
        ask_plainly(lab).close()
