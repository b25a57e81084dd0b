"""From the bytes of a response body to server-sent events; no I/O (product W2).

The rules are those of the WHATWG HTML standard, "Interpreting an event stream". What comes in place of an event stream is
recognised by `BodyDecoder`. Any split of the same bytes gives the same events.
"""

from typing import Literal

import msgspec

from mini_agent.core.errors import ProtocolError
from mini_agent.wire.loading import loads

EVENT_LIMIT = 64 * 1024 * 1024
"""Bytes of an unfinished event that may be held between two feeds."""

HEAD_LIMIT = 64 * 1024
"""Bytes that are kept of the beginning of a body, for an error message."""

BodyKind = Literal["unknown", "sse", "ndjson", "json", "other"]

_RETRY_DIGITS = 15
_FIELDS = (b"data", b"event", b"id", b"retry")
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    """One event. id: the stream's last event id so far. retry: milliseconds, where the event's own lines name them."""

    event: str = "message"
    data: str = ""
    id: str | None = None
    retry: int | None = None


class _Lines:
    """Bytes to complete lines. A line ends with CR, LF or CRLF, wherever the bytes are split.

    Only complete lines are decoded: no character is cut in two, and a broken one can't swallow a line end. A byte is
    searched once and joined once, so that the cost is linear.
    """

    def __init__(self) -> None:
        self._tail = bytearray()
        self._after_cr = False
        self._at_start = True

    @property
    def held(self) -> int:
        """Bytes of the unfinished line."""
        return len(self._tail)

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes."""
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):  # the second half of a CRLF whose line is out already
                data = data[1:]
        end = data.rfind(b"\n") + 1
        cr = data.rfind(b"\r", end)
        if cr >= 0:
            end = cr + 1
            self._after_cr = end == len(data)
        if not end:
            self._tail += data
            return []
        if self._tail:
            self._tail += data[:end]
            lines = self._split(self._tail)
            self._tail.clear()
        else:
            lines = self._split(data[:end])
        self._tail += data[end:]
        lines.pop()  # what stands behind the last line end: nothing
        return lines

    def close(self) -> list[str]:
        """The last line, if it has no end."""
        lines = self._split(self._tail) if self._tail else []
        self._tail.clear()
        return lines

    def _split(self, data: bytes | bytearray) -> list[str]:
        text = data.decode("utf-8", "replace")
        if self._at_start:
            self._at_start = False
            text = text.removeprefix("\ufeff")
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text.split("\n")


class SSEDecoder:
    """An event stream."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._open = 0
        self._data: list[str] = []
        self._event = "message"
        self._id: str | None = None
        self._retry: int | None = None
        self.retry_ms: int | None = None
        """The last waiting time that the server named (W3), also in a block without data."""

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that `data` completes. Raises ProtocolError for an endless one."""
        events = self._take(self._lines.feed(data))
        self._open = self._open + len(data) if self._data and not events else self._lines.held
        _check(self._open)
        return events

    def close(self) -> list[ServerSentEvent]:
        """What a body without its final blank line still held.

        The standard drops it, but providers end streams so, and it may be the event with the finish reason.
        """
        return self._take([*self._lines.close(), ""])

    def _take(self, lines: list[str]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        data = self._data
        for line in lines:
            if not line:
                if data:
                    # One line of data is the rule; to join it would cost as much as all the rest.
                    text = data.pop() if len(data) == 1 else "\n".join(data)
                    events.append(ServerSentEvent(self._event, text, self._id, self._retry))
                    data.clear()
                self._event = "message"
                self._retry = None
            elif line.startswith("data: "):  # nearly every line; what _field would do with it
                data.append(line[6:])
            else:
                self._field(line)
        return events

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._event = value or "message"
            case "id" if "\0" not in value:
                self._id = value
            case "retry" if value.isascii() and value.isdigit() and len(value) <= _RETRY_DIGITS:
                self._retry = self.retry_ms = int(value)
            case _:
                pass  # a comment, or a field that nobody knows


class NDJSONDecoder:
    """One JSON document a line; each becomes the data of an event."""

    def __init__(self) -> None:
        self._lines = _Lines()

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The documents that `data` completes. Raises ProtocolError for an endless one."""
        events = self._take(self._lines.feed(data))
        _check(self._lines.held)
        return events

    def close(self) -> list[ServerSentEvent]:
        """The last document, if no line end followed it."""
        return self._take(self._lines.close())

    def _take(self, lines: list[str]) -> list[ServerSentEvent]:
        return [ServerSentEvent(data=text) for line in lines if (text := line.strip())]


class _Document:
    """A body that begins like JSON: one document, whole or pretty-printed, or one on each line.

    It is the latter if the first line is a document by itself and something follows it.
    """

    def __init__(self) -> None:
        self._body = bytearray()
        self._searching = True
        self._first_end = 0

    def feed(self, data: bytes) -> bool:
        """Whether the body has turned out to be one document a line. Raises ProtocolError for an endless one."""
        follows = len(self._body)
        self._body += data
        _check(len(self._body))
        if self._searching and (newline := self._body.find(b"\n", follows)) >= 0:
            self._searching = False
            if _is_json(bytes(self._body[:newline])):
                follows = self._first_end = newline + 1
        return bool(self._first_end and self._body[follows:].strip(_BLANK))

    def take(self) -> bytes:
        """The whole body, which is let go of."""
        body = bytes(self._body)
        self._body.clear()
        return body


class BodyDecoder:
    """A body of unknown kind, told by its first bytes that are not blank.

    `{` and `[` begin JSON, `<` a page; all else is read as an event stream, which is what it should be. A single document
    becomes one event when the body ends. Of what is none of these, `head` keeps the beginning.
    """

    def __init__(self) -> None:
        self.kind: BodyKind = "unknown"
        """`other` may still turn into `sse`: unknown fields may come first."""
        self._sse = SSEDecoder()
        self._known: SSEDecoder | NDJSONDecoder | None = None
        self._document: _Document | None = None
        self._begun = False
        self._head = bytearray()

    @property
    def head(self) -> bytes:
        """The beginning of the body from its first byte that is not blank, at most HEAD_LIMIT."""
        return bytes(self._head)

    @property
    def retry_ms(self) -> int | None:
        """The last waiting time that the server named, in milliseconds."""
        return self._sse.retry_ms

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """The events that `data` completes. Raises ProtocolError for an endless one."""
        if self._known is not None:
            return self._known.feed(data)
        if not self._begun:
            # The blanks are lines too, and the byte order mark is the event stream's own business.
            text = data.lstrip(_BLANK + _BOM)
            if not text:
                return self._sse.feed(data)
            self._begun = True
            if text.startswith((b"{", b"[")):
                self._document = _Document()
            elif text.startswith(b"<"):
                self.kind = "other"
        else:
            text = data
        self._head += text[: HEAD_LIMIT - len(self._head)]
        if self._document is not None:
            return self._feed_document(self._document, text)
        if self._head.startswith(b"<"):
            return []
        events = self._sse.feed(data)
        if events:
            self.kind = "sse"
        elif self.kind == "unknown":
            self.kind = _stream_kind(self._head)
        if self.kind == "sse":
            self._known = self._sse
        return events

    def close(self) -> list[ServerSentEvent]:
        """What the body still held at its end."""
        if self._known is not None:
            return self._known.close()
        if self._document is not None:
            self.kind = "json"
            body = self._document.take()
            self._document = None
            return [ServerSentEvent(data=body.decode("utf-8", "replace").strip())]
        events = self._sse.close()
        if events:
            self.kind = "sse"
        elif self._head:
            self.kind = "other"
        return events

    def _feed_document(self, document: _Document, data: bytes) -> list[ServerSentEvent]:
        if not document.feed(data):
            return []
        self.kind = "ndjson"
        self._known = NDJSONDecoder()
        return self._known.feed(document.take())


def _stream_kind(head: bytes | bytearray) -> BodyKind:
    """What the first line, complete or not, says of a body that gave no event yet."""
    line = bytes(head).split(b"\n", 1)[0].split(b"\r", 1)[0]
    name, colon, _ = line.partition(b":")
    if colon or len(line) < len(head):
        return "sse" if name in _FIELDS or (colon and not name) else "other"
    return "unknown" if any(field.startswith(name) for field in _FIELDS) else "other"


def _is_json(line: bytes) -> bool:
    try:
        loads(line)
    except ValueError:
        return False
    return True


def _check(held: int) -> None:
    if held > EVENT_LIMIT:
        raise ProtocolError(
            f"one event of the stream is larger than {EVENT_LIMIT // 1024 // 1024} MiB", retryable=False
        )
