"""A reply of the lab server as a value: exact bytes, and what happens between them."""

import http.client
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Framing = Literal["chunked", "length", "close", "raw"]
"""How the end of a body is told: chunked transfer encoding, a content-length, or the closed connection (RFC 9112, 6.3).

Raw: nothing is added, not even a status line; the parts are all there is, and the connection closes after them.
"""


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence for that many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection ends here. reset: with RST, where the client may lose what it had not read; else with FIN."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Silence until the client goes away."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same bytes after every `seconds`, until the client goes away."""

    data: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Bytes that the framing leaves alone: in a chunked body they are no chunk."""

    data: bytes


Part = bytes | Pause | Cut | Hold | Repeat | Verbatim


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as it goes over the socket.

    body: each `bytes` is one write, and one HTTP chunk where the framing is chunked. TCP may still join or split what it
    carries; a `Pause` between two writes keeps them apart. headers: given ones replace the framing's own, so that a
    content-length can lie. With raw framing status and headers are not sent. before: what happens before the head.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Sequence[Part] = ()
    framing: Framing = "chunked"
    before: Sequence[Part] = ()


def head(reply: Reply) -> bytes:
    """The status line and the headers; bytes that are not UTF-8 can be given as surrogate escapes."""
    if reply.framing == "raw":
        return b""
    own: dict[Framing, tuple[str, str]] = {
        "chunked": ("transfer-encoding", "chunked"),
        "length": ("content-length", str(sum(len(part) for part in reply.body if isinstance(part, bytes)))),
        "close": ("connection", "close"),
    }
    headers = dict([own[reply.framing]])
    headers.update((name.lower(), value) for name, value in reply.headers.items())
    phrase = http.client.responses.get(reply.status, "")
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")


def event_stream(*parts: Part, framing: Framing = "chunked") -> Reply:
    """A 200 whose body is server-sent events, given as bytes and faults."""
    return Reply(200, {"content-type": "text/event-stream"}, parts, framing)


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """One JSON document."""
    return Reply(status, {"content-type": "application/json", **(headers or {})}, (compact(value),), "length")


def sse(payload: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    event = f"event: {name}\n" if name else ""
    return event.encode() + b"data: " + compact(payload) + b"\n\n"


def compact(value: Any) -> bytes:
    """`value` as JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()
