"""The lines of a journal or a log: made without secrets, read whatever is among them, mended at their end."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, get_args

import msgspec

from mini_agent.core.surrogates import join_surrogates
from mini_agent.record.records import Header, Record

Clean = Callable[[str], str]
"""Text without secrets."""

_OPAQUE = frozenset({"id", "call_id", "request_id", "response_id", "signature", "encrypted", "extra"})
"""Fields in which a provider or we know things again; no text, and of no use unless they are exactly what they were."""

_BLOCK = 1 << 16


def encode(record: Record, clean: Clean) -> bytes:
    """A record as one line. Text is cleaned before it is encoded: in JSON, what is taken out may be half of an escape."""
    return msgspec.json.encode(_cleaned(record, clean)) + b"\n"


def _cleaned(value: Any, clean: Clean) -> Any:
    match value:
        case str():
            return clean(join_surrogates(value))
        case msgspec.Struct():
            told = {
                name: _cleaned(getattr(value, name), clean)
                for name in value.__struct_fields__
                if name not in _OPAQUE
            }
            return msgspec.structs.replace(value, **told)
        case list() | tuple():
            return [_cleaned(item, clean) for item in value]
        case dict():
            return {_cleaned(key, clean): _named(key, item, clean) for key, item in value.items()}
        case _:
            return value


def _named(key: Any, value: Any, clean: Clean) -> Any:
    """A value in an object, read together with its name: `"password": "..."` is a secret because of the first half."""
    if not (isinstance(key, str) and isinstance(value, str)):
        return _cleaned(value, clean)
    name = f"{join_surrogates(key)}="
    told = clean(name + join_surrogates(value))
    return told[len(name) :] if told.startswith(name) else _cleaned(value, clean)


class Reader:
    """The records of a journal's lines, in order, to be gone through once.

    headers: those that were read so far. unknown: how many lines were of a type that this version does not know. broken:
    how many were no records.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self._decode = msgspec.json.Decoder[Record](Record).decode
        self.headers: list[Header] = []
        self.unknown = 0
        self.broken = 0

    def __iter__(self) -> Iterator[Record]:
        known = {kind.__struct_config__.tag for kind in get_args(Record)}
        for line in self._lines:
            try:
                record = self._decode(line)
            except (msgspec.DecodeError, RecursionError):
                kind = _type(line)
                if kind is None or kind in known:
                    self.broken += 1
                else:
                    self.unknown += 1
            else:
                if isinstance(record, Header):
                    self.headers.append(record)
                yield record


class _Typed(msgspec.Struct):
    type: str


def _type(line: bytes) -> str | None:
    """The type that a line gives itself, None where it is no record at all."""
    try:
        return msgspec.json.decode(line, type=_Typed).type
    except (msgspec.DecodeError, RecursionError):
        return None


def mend(file: BinaryIO) -> None:
    """Leaves a file of lines with a whole last line: a torn one is cut off, one that lacks only its end is ended.

    file: open for reading and appending, unbuffered.
    """
    end = file.seek(0, os.SEEK_END)
    rest = b""
    while len(rest) < end and b"\n" not in rest:
        start = max(0, end - max(_BLOCK, 2 * len(rest)))
        file.seek(start)
        rest = _read(file, end - start)
    last = rest[rest.rfind(b"\n") + 1 :]
    if not last:
        return
    if _type(last) is not None:
        file.write(b"\n")
    else:
        os.ftruncate(file.fileno(), end - len(last))


def _read(file: BinaryIO, count: int) -> bytes:
    """So many bytes, which are there: an unbuffered file may give them piece by piece."""
    pieces = []
    while count and (piece := file.read(count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)
