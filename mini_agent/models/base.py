"""What a model is to the rest of the program: a `Streamer`.

Contract of `stream`: each attempt begins with one `StreamStarted`; the stream ends with exactly one `Completed`, or
raises `ModelError`; `CancelledError` passes through, and whatever was open is closed first. Wrappers are Streamers
around a Streamer: `TracedModel(RetryingModel(HttpModel(...)))`.
"""

import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from mini_agent.core.errors import EmptyAnswerError
from mini_agent.core.events import Completed, StreamEvent
from mini_agent.core.messages import Request, Response, Usage


@dataclass(slots=True)
class Meter:
    """What events can't carry, written by the model that talks to a socket and read by `TracedModel`.

    Times are seconds. read_gaps_s: between successive reads of the socket. event_bytes: sizes of the wire events.
    usage: the last that was reported, also of an attempt that did not complete.
    """

    connect_s: float | None = None
    first_byte_s: float | None = None
    read_gaps_s: list[float] = field(default_factory=list)
    event_bytes: list[int] = field(default_factory=list)
    bytes: int = 0
    usage: Usage | None = None

    def reset(self) -> None:
        """Back to nothing measured; done before each attempt."""
        self.connect_s = self.first_byte_s = self.usage = None
        self.bytes = 0
        self.read_gaps_s.clear()
        self.event_bytes.clear()


@dataclass(slots=True, frozen=True)
class Attempt:
    """One try at a request. The outermost Streamer makes it where none is given; wrappers pass it on, renumbered.

    number: from 1. fresh_connection: outside the pool. without: what this attempt leaves out: `images`, `reasoning` that
    a provider refused (or its echo, where that was what it missed), or a top-level field by the name it was sent under (one
    that is called like the first two with a `/` before it).
    deadline: the total one of W9, on the event loop's clock, None for none.
    """

    request_id: str
    number: int = 1
    fresh_connection: bool = False
    without: frozenset[str] = frozenset()
    deadline: float | None = None
    meter: Meter = field(default_factory=Meter)


def new_attempt(deadline: float | None = None, without: frozenset[str] = frozenset()) -> Attempt:
    """The first attempt of a new request."""
    return Attempt(request_id=uuid.uuid4().hex, deadline=deadline, without=without)


class Streamer(Protocol):
    """A model, or a wrapper around one."""

    def stream(self, request: Request, attempt: Attempt | None = None) -> AsyncGenerator[StreamEvent, None]:
        """The events of one request; raises `ModelError`. Close it with `aclosing`."""
        ...

    async def aclose(self) -> None:
        """Lets go of connections. The Streamer is not used afterwards."""
        ...


async def complete(model: Streamer, request: Request) -> Response:
    """The answer to `request`, its stream drained. Raises `ModelError`."""
    response: Response | None = None
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, Completed):
                response = event.response
    if response is None:
        raise RuntimeError(f"{type(model).__name__} ended its stream without Completed")
    return response


def answered(response: Response) -> Response:
    """`response`, unless it is empty: neither text nor a call though it claims to be whole (product A6).

    An answer that was cut, refused or filtered may be without text: its stop reason says why. Raises EmptyAnswerError.
    """
    if response.stop_reason in ("end_turn", "tool_use", "other") and not (
        response.text.strip() or response.tool_calls
    ):
        raise EmptyAnswerError
    return response
