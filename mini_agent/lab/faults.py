"""Faults as values: each changes a reply, or puts something between its events (product D2). Pure.

`apply` lets them act in a fixed order, whatever the order in which they were given: first on what is answered, then
between the events, then on the bytes of the body, last on the head and on what comes before it.
"""

import itertools
import random
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mini_agent.core.profile import Api
from mini_agent.lab.families import FAMILIES, failed
from mini_agent.lab.parts import Cut, Part, Repeat, Reply, Verbatim, head, json_reply, sse
from mini_agent.lab.playing import Omission

Stage = Literal["answer", "body", "head"]

Change = Callable[[Reply, Api], Reply]

GARBAGE = b'data: {"lab": garbage\n\n'
PAGE = b"<!doctype html>\n<html><head><title>Sign in</title></head><body><h1>Sign in to the network</h1></body></html>\n"
WHY = "the lab server was told to fail"
LONGEST_PIECE = 64
"""Bytes; of pieces of random length."""


@dataclass(frozen=True, slots=True)
class Omits:
    """The answer is played without its finish reason or its end mark."""

    what: Omission


@dataclass(frozen=True, slots=True)
class Changes:
    """Makes another reply of a reply."""

    stage: Stage
    change: Change


@dataclass(frozen=True, slots=True)
class Inserts:
    """Puts a part behind event number `at` (0: before the first), behind each, or at the end. part: made for the reply."""

    at: int | Literal["each", "end"]
    part: Callable[[Reply], Part]


Fault = Omits | Changes | Inserts


def omissions(faults: Iterable[Fault]) -> frozenset[Omission]:
    """What an answer is to be played without."""
    return frozenset(fault.what for fault in faults if isinstance(fault, Omits))


def apply(reply: Reply, faults: Sequence[Fault], api: Api) -> Reply:
    """`reply` with these faults. Those of one stage act in the order given."""
    reply = _changed(reply, faults, api, "answer")
    reply = _inserted(reply, [fault for fault in faults if isinstance(fault, Inserts)])
    reply = _changed(reply, faults, api, "body")
    return _changed(reply, faults, api, "head")


def status(code: int) -> Change:
    """Another status: a success keeps its body, everything else is an error of the family."""

    def change(reply: Reply, api: Api) -> Reply:
        return replace(reply, status=code) if 200 <= code < 300 else failed(code, WHY, api)

    return change


def html(reply: Reply, api: Api) -> Reply:
    """A web page instead of an answer."""
    del api
    return Reply(reply.status, {"content-type": "text/html; charset=utf-8"}, (PAGE,), "length")


def chunks(pieces: Sequence[bytes]) -> Change:
    """These bytes as the body; where they begin with a status line, as everything there is."""

    def change(reply: Reply, api: Api) -> Reply:
        del api
        if pieces and pieces[0].startswith(b"HTTP/"):
            return Reply(body=pieces, framing="raw")
        return replace(reply, body=pieces, framing="chunked")

    return change


def error_inside(after: int) -> Change:
    """An error of the family as the last event, behind `after` others; unstreamed, in place of the answer."""

    def change(reply: Reply, api: Api) -> Reply:
        failure = FAMILIES[api].failure("overloaded_error", WHY)
        if not _is_stream(reply):
            return json_reply(failure, reply.status)
        if api == "responses":
            failure = {"type": "error", "code": "server_error", "message": WHY, "param": None}
        event = sse(failure, None if api == "chat" else "error")
        return replace(reply, body=(*_flat(_by_event(reply.body)[: after + 1]), event))

    return change


def garbage(reply: Reply) -> Part:
    """What is no event of the family, nor JSON."""
    return GARBAGE if _is_stream(reply) else GARBAGE.removeprefix(b"data: ")


def keepalive(seconds: float) -> Callable[[Reply], Part]:
    """Nothing but signs of life, for ever: comments in a stream, blank lines before a document (as DeepSeek does)."""
    return lambda reply: Repeat(b": keep-alive\n\n" if _is_stream(reply) else b"\n", seconds)


def always(part: Part) -> Callable[[Reply], Part]:
    """The same part for every reply."""
    return lambda reply: part


def gzipped(reply: Reply, api: Api) -> Reply:
    """The body compressed, each part flushed, so that it is still live."""
    del api
    packer = zlib.compressobj(wbits=31)

    def pack(data: bytes, flush: int) -> bytes:
        return packer.compress(data) + packer.flush(flush)

    body: list[Part] = []
    for part in reply.body:
        if isinstance(
            part, Repeat
        ):  # a full flush on both sides makes the bytes between good for any number of times
            body += [pack(b"", zlib.Z_FULL_FLUSH), replace(part, data=pack(part.data, zlib.Z_FULL_FLUSH))]
        else:
            body.append(pack(part, zlib.Z_SYNC_FLUSH) if isinstance(part, bytes) else part)
    body.append(packer.flush())
    return replace(reply, headers={**reply.headers, "content-encoding": "gzip"}, body=body)


def split(sizes: Callable[[], Iterator[int]]) -> Change:
    """The body's bytes in pieces of these sizes, wherever events begin and end."""

    def change(reply: Reply, api: Api) -> Reply:
        del api
        return replace(reply, body=tuple(_split(reply.body, sizes())))

    return change


def sizes_at_random(seed: str) -> Iterator[int]:
    """Sizes without end, the same ones for the same seed."""
    rng = random.Random(seed)  # noqa: S311  where bytes are split, nothing secret
    while True:
        yield rng.randint(1, LONGEST_PIECE)


def cut_after(limit: int, cut: Cut) -> Change:
    """The end of the connection after so many bytes of the body, in the middle of whatever they are."""

    def change(reply: Reply, api: Api) -> Reply:
        del api
        left = limit
        body: list[Part] = []
        for part in reply.body:
            if isinstance(part, bytes):
                if len(part) >= left:
                    return replace(reply, body=(*body, part[:left], cut))
                left -= len(part)
            body.append(part)
        return reply

    return change


def header(name: str, value: str) -> Change:
    """A header, in place of one of that name."""

    def change(reply: Reply, api: Api) -> Reply:
        del api
        others = {key: kept for key, kept in reply.headers.items() if key.lower() != name.lower()}
        return replace(reply, headers={**others, name: value})

    return change


def before(part: Part) -> Change:
    """Something that happens before the head."""

    def change(reply: Reply, api: Api) -> Reply:
        del api
        return replace(reply, before=(*reply.before, part))

    return change


def truncated_head(reply: Reply, api: Api) -> Reply:
    """The first half of the head, then the end of the connection."""
    del api
    whole = head(reply)
    return Reply(before=reply.before, body=(whole[: len(whole) // 2], Cut()), framing="raw")


def _changed(reply: Reply, faults: Iterable[Fault], api: Api, stage: Stage) -> Reply:
    for fault in faults:
        if isinstance(fault, Changes) and fault.stage == stage:
            reply = fault.change(reply, api)
    return reply


def _inserted(reply: Reply, inserts: Sequence[Inserts]) -> Reply:
    """`reply` with these parts between its events, counted as they were; what is behind more events than there are is
    left out."""
    groups = _by_event(reply.body)
    last = len(groups) - 1
    for insert in inserts:
        part = insert.part(reply)
        at = insert.at
        for place in range(1, last + 1) if at == "each" else (last if at == "end" else at,):
            if place <= last:
                groups[place].append(part)
    body = tuple(_flat(groups))
    unmeasured = any(isinstance(part, Repeat | Verbatim) for part in body)
    framing = "chunked" if unmeasured and reply.framing == "length" else reply.framing
    return replace(reply, body=body, framing=framing)


def _by_event(body: Sequence[Part]) -> list[list[Part]]:
    """What comes before the first event, then each event with what follows it. An event is what is written at once."""
    groups: list[list[Part]] = [[]]
    for part in body:
        if isinstance(part, bytes):
            groups.append([])
        groups[-1].append(part)
    return groups


def _flat(groups: Iterable[Iterable[Part]]) -> Iterator[Part]:
    return (part for group in groups for part in group)


def _split(body: Sequence[Part], sizes: Iterator[int]) -> Iterator[Part]:
    for is_run, parts in itertools.groupby(body, key=lambda part: isinstance(part, bytes)):
        if not is_run:
            yield from parts
            continue
        run = b"".join(part for part in parts if isinstance(part, bytes))
        place = 0
        while place < len(run):
            size = next(sizes)
            yield run[place : place + size]
            place += size


def _is_stream(reply: Reply) -> bool:
    return reply.headers.get("content-type", "").startswith("text/event-stream")
