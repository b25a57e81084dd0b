"""Between the work and whoever watches it: events in order, none lost, no more than a handful ahead (product W10).

The work is done in a task of its own, so that a cancel ends the work and not the telling. An event is in the hand-over
before anything is awaited; the bound only delays the producer afterwards. One consumer at a time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from mini_agent.core.events import AgentEvent, AttemptEnded
from mini_agent.core.messages import Usage

BOUND = 64


class HandOver:
    """Made before the agent and the tracing wrapper, which both put into it.

    spent: what the attempts since `open` reported of their usage, those that were given up included; None where nobody
    measured any.
    """

    def __init__(self, bound: int = BOUND) -> None:
        self._bound = bound
        self._events: deque[AgentEvent] = deque()
        self._closed = True
        self.spent: Usage | None = None
        self._came = asyncio.Event()
        self._room = asyncio.Event()
        self._idle = asyncio.Event()

    def open(self) -> None:
        """Starts empty."""
        self._events.clear()
        self._closed = False
        self.spent = None
        for event in (self._came, self._room, self._idle):
            event.clear()

    async def put(self, event: AgentEvent) -> None:
        """Hands over, then waits while more than the bound lies ahead."""
        self.put_now(event)
        while len(self._events) > self._bound and not self._closed:
            self._room.clear()
            await self._room.wait()

    def put_now(self, event: AgentEvent) -> None:
        """Hands over past the bound; for what must be told although the producer may not wait."""
        if self._closed:
            return
        if isinstance(event, AttemptEnded):
            known = Usage() if event.estimated else event.usage
            self.spent = known if self.spent is None else self.spent + known
        self._events.append(event)
        self._idle.clear()
        self._came.set()

    async def settled(self) -> None:
        """Returns when the consumer has taken everything and come back for more.

        After a close never: nobody will know of what would be done then, so only a cancel ends this.
        """
        await self._idle.wait()

    def close(self) -> None:
        """No event comes after those that are there."""
        self._closed = True
        self._idle.clear()
        for event in (self._came, self._room):
            event.set()

    async def events(self) -> AsyncGenerator[AgentEvent, None]:
        """Everything, up to the close."""
        while True:
            while self._events:
                yield self._events.popleft()
                if len(self._events) <= self._bound // 2:
                    self._room.set()
            if self._closed:
                return
            self._came.clear()
            self._idle.set()
            await self._came.wait()
