"""Pieces of chat-completions streams for the lab server, and what holds for every request's history."""

import json
import threading
from collections.abc import Callable
from typing import Any

from mini_agent.lab.replies import Part, Reply, event_stream
from mini_agent.lab.requests import LabRequest


def text(said: str) -> bytes:
    return _chunk({"content": said})


def thought(said: str) -> bytes:
    return _chunk({"reasoning_content": said})


def call(name: str, arguments: dict[str, Any], index: int = 0) -> bytes:
    """A whole tool call in one piece."""
    return begun_call(name, json.dumps(arguments), index)


def begun_call(name: str, arguments: str, index: int = 0) -> bytes:
    """The first piece of a tool call: its name, and as much of its arguments."""
    function = {"name": name, "arguments": arguments}
    piece = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
    return _chunk({"tool_calls": [piece]})


def calls(name: str, arguments: dict[str, Any]) -> Reply:
    """An answer that only calls a tool."""
    return several_calls((name, arguments))


def several_calls(*called: tuple[str, dict[str, Any]]) -> Reply:
    """An answer that only calls tools, several at once."""
    pieces = (call(name, arguments, index) for index, (name, arguments) in enumerate(called))
    return whole(*pieces, finish_reason="tool_calls")


def _chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
    body = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], **more}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def whole(*parts: Part, finish_reason: str = "stop") -> Reply:
    """A stream that comes to its end."""
    return event_stream(*parts, _chunk({}, finish_reason, usage=USAGE), b"data: [DONE]\n\n")


def script(*steps: Reply | threading.Event) -> Callable[[LabRequest], Reply]:
    """Successive replies; an event among them holds the next one back until it is set."""
    following = iter(steps)

    def reply(_: LabRequest) -> Reply:
        while isinstance(step := next(following), threading.Event):
            assert step.wait(20)
        return step

    return reply


def sent(request: LabRequest) -> list[dict[str, Any]]:
    """A request's messages without the system's; fails where a provider would refuse them (product A1)."""
    system, *messages = request.json["messages"]
    assert system["role"] == "system"
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting, "a call has no result"
        waiting = [one["id"] for one in message.get("tool_calls", ())]
        assert message.get("content") or waiting
    assert not waiting
    assert messages[-1]["role"] in ("user", "tool")
    return messages


def outline(request: LabRequest) -> list[str]:
    """What a request holds, a line for each thing said, called or given back; messages of the user apart again."""
    lines: list[str] = []
    for message in sent(request):
        content = message.get("content") or ""
        match message["role"]:
            case "user":
                lines += [f"user: {said}" for said in content.split("\n\n")]
            case "tool":
                lines.append(f"result: {content}")
            case _:
                lines += [f"assistant: {content}"] if content else []
                called = (each["function"] for each in message.get("tool_calls", ()))
                lines += [f"call: {each['name']} {each['arguments']}" for each in called]
    return lines
