"""What the lab server was asked: HTTP/1.1 requests read from a socket, and the core request in a chat-completions body."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mini_agent.core.messages import (
    ERROR_PREFIX,
    AnyBlock,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)


class MalformedError(Exception):
    """Bytes that are no HTTP/1.1 request."""


@dataclass(frozen=True, slots=True)
class LabRequest:
    """One request as it came. headers: names in lower case. json: the decoded body, None where it is not JSON.

    arrived: seconds on the event loop's clock, when the body was complete. connection: which of the server's connections
    it came on, from 1.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    json: Any
    arrived: float
    connection: int

    @property
    def streams(self) -> bool:
        """Whether the answer is wanted as a stream."""
        return isinstance(self.json, dict) and self.json.get("stream") is True

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


async def read_request(reader: asyncio.StreamReader, connection: int) -> LabRequest | None:
    """The next request of a connection; None where the client closed it instead. Raises MalformedError."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except (asyncio.LimitOverrunError, ValueError) as problem:
        raise MalformedError(str(problem)) from problem
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        decoded = None
    arrived = asyncio.get_running_loop().time()
    return LabRequest(method, path, headers, body, decoded, arrived, connection)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return bytes(body)


def core_request(request: LabRequest) -> Request:
    """The core request in a chat-completions body, as far as a script looks at it. What it does not know is left out."""
    body = request.json if isinstance(request.json, dict) else {}
    system: list[str] = []
    messages: list[Message] = []
    for entry in _objects(body.get("messages")):
        role = entry.get("role")
        if role in ("system", "developer"):
            system.append(_text(entry.get("content")))
        elif role == "user":
            messages.append(Message("user", (Text(_text(entry.get("content"))),)))
        elif role == "assistant":
            messages.append(Message("assistant", tuple(_assistant(entry))))
        elif role == "tool":
            content = _text(entry.get("content"))
            failed = content.startswith(ERROR_PREFIX)
            result = ToolResult(
                content.removeprefix(ERROR_PREFIX), failed, str(entry.get("tool_call_id", ""))
            )
            earlier = messages.pop().blocks if messages and messages[-1].role == "tool" else ()
            messages.append(Message("tool", (*earlier, result)))
    functions = [_object(tool.get("function")) for tool in _objects(body.get("tools"))]
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    return Request(
        tuple(messages),
        system="\n\n".join(system),
        tools=tuple(ToolSpec(str(function.get("name", "")), "", {}) for function in functions),
        model=str(body.get("model", "")),
        max_tokens=limit if isinstance(limit, int) else None,
        stream=request.streams,
    )


def _assistant(entry: Mapping[str, Any]) -> list[AnyBlock]:
    blocks: list[AnyBlock] = []
    if reasoning := _text(entry.get("reasoning_content")):
        blocks.append(Reasoning(reasoning))
    if text := _text(entry.get("content")):
        blocks.append(Text(text))
    for call in _objects(entry.get("tool_calls")):
        function = _object(call.get("function"))
        blocks.append(
            ToolCall(
                str(call.get("id", "")), str(function.get("name", "")), _arguments(function.get("arguments"))
            )
        )
    return blocks


def _arguments(written: Any) -> dict[str, Any]:
    try:
        return _object(json.loads(written))
    except (TypeError, ValueError, RecursionError):
        return {}


def _text(content: Any) -> str:
    """The text of a content field: a string, or a list of parts."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in _objects(content))
    return content if isinstance(content, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
