"""One conversation in use: what a front end runs turns on. It implements `ui.ports.SessionPort`."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from mini_agent.agent.loop import Agent
from mini_agent.core.events import AgentEvent, Compacted, Notice
from mini_agent.core.history import Conversation
from mini_agent.models.base import Streamer
from mini_agent.record.debug import DebugLog
from mini_agent.record.journal import Journal
from mini_agent.record.records import Checkpoint


class _Subscriber(Protocol):
    """What is kept of the events, somewhere. problem: why nothing is any more, None while all is well."""

    problem: str | None

    def write(self, event: AgentEvent, /) -> None: ...


class Session:
    """Owns the agent, the model's connections and what is written down."""

    def __init__(
        self,
        agent: Agent,
        model: Streamer,
        conversation: Conversation,
        problems: Sequence[str] = (),
        *,
        journal: Journal | None = None,
        log: DebugLog | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """problems: what could not be loaded, told with the first turn. journal, log: see each event before anyone else."""
        self._agent = agent
        self._model = model
        self._conversation = conversation
        self._problems = list(problems)
        self._journal = journal
        self._log = log
        self._subscribers: list[_Subscriber] = [one for one in (journal, log) if one is not None]
        self._told: set[str] = set()
        self._syncing: asyncio.Task[None] | None = None
        self._now = now

    @property
    def id(self) -> str:
        """What `-r` takes; "" where nothing is written down."""
        written = self._journal is not None and self._journal.is_begun and self._journal.problem is None
        return self._journal.id if self._journal is not None and written else ""

    @property
    def is_waiting(self) -> bool:
        """Whether an answer can be asked for without another message."""
        return self._conversation.is_waiting

    async def run(self, prompt: str | None) -> AsyncGenerator[AgentEvent, None]:
        """One turn; its last event is `TurnFinished`. Close it with `aclosing`. prompt: None goes on where one stopped."""
        await self._synced()
        try:
            async with aclosing(self._agent.run(prompt)) as events:
                async for event in events:
                    self._keep(event)
                    yield event
                    while self._problems:
                        yield Notice(t=self._now(), level="warning", text=self._problems.pop(0))
        finally:
            if self._journal is not None:
                # In a thread, and not waited for: a slow disk must not keep the prompt away.
                self._syncing = asyncio.ensure_future(asyncio.to_thread(self._journal.sync))

    def cancel(self) -> None:
        """Ends the turn at once."""
        self._agent.cancel()

    async def aclose(self) -> None:
        try:
            await self._model.aclose()
        finally:
            await self._synced()
            if self._journal is not None:
                self._journal.close()
            if self._log is not None:
                self._log.close()

    def _keep(self, event: AgentEvent) -> None:
        """Writes an event down; a subscriber that fails says so once, and ends nothing else."""
        for subscriber in self._subscribers:
            subscriber.write(event)
            if subscriber.problem is not None and subscriber.problem not in self._told:
                self._told.add(subscriber.problem)
                self._problems.append(subscriber.problem)
        if isinstance(event, Compacted) and self._journal is not None:
            # The agent asks no further before this event was taken, so this is the history as it is now.
            self._journal.write(Checkpoint(t=self._now(), messages=self._conversation.messages))

    async def _synced(self) -> None:
        if self._syncing is not None:
            await asyncio.wait({self._syncing})
            self._syncing = None
