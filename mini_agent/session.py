"""One conversation in use: what a front end runs turns on. It implements `ui.ports.SessionPort`."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Protocol

from msgspec.structs import replace

from mini_agent.agent.loop import Agent
from mini_agent.core.events import AgentEvent, AttemptEnded, Compacted, Completed, Notice, TurnFinished
from mini_agent.core.history import Conversation
from mini_agent.core.messages import Image, ToolSpec, Usage
from mini_agent.core.permission import Mode
from mini_agent.core.pricing import cost
from mini_agent.core.profile import Effort, Price, Profile
from mini_agent.core.status import Status
from mini_agent.models.base import Streamer
from mini_agent.record.debug import DebugLog
from mini_agent.record.journal import Journal
from mini_agent.record.records import Change, Checkpoint, Clear


class _Subscriber(Protocol):
    """What is kept of the events, somewhere. problem: why nothing is any more, None while all is well."""

    problem: str | None

    def write(self, event: AgentEvent, /) -> None: ...


class Session:
    """Owns the agent, the model's connections and what is written down.

    profile: the vendor, for what is known of its models. list_models: what its endpoint offers. problems: what could not be
    loaded, told with the first turn. journal, log: see each event before anyone else. now: unix seconds.
    """

    def __init__(
        self,
        agent: Agent,
        model: Streamer,
        conversation: Conversation,
        profile: Profile,
        list_models: Callable[[], Awaitable[Sequence[str]]],
        problems: Sequence[str] = (),
        *,
        journal: Journal | None = None,
        log: DebugLog | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._agent = agent
        self._model = model
        self._conversation = conversation
        self._profile = profile
        self._list_models = list_models
        self._problems = list(problems)
        self._journal = journal
        self._log = log
        self._subscribers: list[_Subscriber] = [one for one in (journal, log) if one is not None]
        self._told: set[str] = set()
        self._syncing: asyncio.Task[None] | None = None
        self._now = now
        self._tally = _Tally()

    @property
    def id(self) -> str:
        """What `-r` takes; "" where nothing is written down."""
        written = self._journal is not None and self._journal.is_begun and self._journal.problem is None
        return self._journal.id if self._journal is not None and written else ""

    @property
    def is_waiting(self) -> bool:
        """Whether an answer can be asked for without another message."""
        return self._conversation.is_waiting

    @property
    def answer(self) -> str:
        """The text of the last answer, "" where there is none."""
        answers = (
            message.text for message in reversed(self._conversation.messages) if message.role == "assistant"
        )
        return next(filter(str.strip, answers), "")

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return self._agent.tools

    @property
    def status(self) -> Status:
        settings = self._agent.settings
        return Status(
            model=settings.model,
            mode=settings.mode,
            effort=settings.effort,
            context_tokens=self._tally.context_tokens,
            window=settings.window,
            usage=self._tally.usage,
            price=self._price,
            cost=self._tally.cost,
        )

    @property
    def _price(self) -> Price | None:
        return self._profile.facts(self._agent.settings.model).price

    def run(self, prompt: str | None, images: Sequence[Image] = ()) -> AsyncGenerator[AgentEvent, None]:
        """One turn; its last event is `TurnFinished`. Close it with `aclosing`.

        prompt: None goes on where one stopped. images: go out with it.
        """
        return self._told_of(lambda: self._agent.run(prompt, images))

    def compact(self) -> AsyncGenerator[AgentEvent, None]:
        """Has the conversation summed up, as a turn of its own."""
        return self._told_of(self._agent.compact)

    def shell(self, command: str) -> AsyncGenerator[AgentEvent, None]:
        """Runs a command of the user's own, as a turn of its own."""
        return self._told_of(lambda: self._agent.shell(command))

    def cancel(self) -> None:
        """Ends the turn at once."""
        self._agent.cancel()

    def use(
        self, *, model: str | None = None, mode: Mode | None = None, effort: Effort | None = None
    ) -> None:
        """Sets what is given, from the next turn on."""
        before = self._agent.settings
        model = model or before.model
        settings = dataclasses.replace(
            before,
            model=model,
            mode=mode or before.mode,
            effort=effort or before.effort,
            window=self._profile.facts(model).window,
        )
        self._agent.use(settings)
        if self._journal is not None and self._journal.is_begun:
            change = Change(t=self._now(), model=settings.model, mode=settings.mode, effort=settings.effort)
            self._journal.write(change)

    async def models(self) -> Sequence[str]:
        """The models that the endpoint offers. Raises ModelError."""
        return await self._list_models()

    def clear(self) -> None:
        """Begins a conversation without what was said; the journal keeps it."""
        self._conversation.replace(())
        self._tally.context_tokens = None
        if self._journal is not None and self._journal.is_begun:
            self._journal.write(Clear(t=self._now()))

    async def aclose(self) -> None:
        try:
            await self._model.aclose()
        finally:
            await self._synced()
            if self._journal is not None:
                self._journal.close()
            if self._log is not None:
                self._log.close()

    async def _told_of(
        self, turn: Callable[[], AsyncGenerator[AgentEvent, None]]
    ) -> AsyncGenerator[AgentEvent, None]:
        """A turn's events, each written down before it is passed on."""
        await self._synced()
        self._tally.begin_turn()
        try:
            async with aclosing(turn()) as events:
                async for event in events:
                    told = self._tally.counted(event, self._price)
                    self._keep(told)
                    yield told
                    while self._problems:
                        yield Notice(t=self._now(), level="warning", text=self._problems.pop(0))
        finally:
            if self._journal is not None:
                # In a thread, and not waited for: a slow disk must not keep the prompt away.
                self._syncing = asyncio.ensure_future(asyncio.to_thread(self._journal.sync))

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


class _Tally:
    """Adds up what the attempts took: of the session, and what of it the turn did. Costs are in the price's currency."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.cost: float | None = None
        self.context_tokens: int | None = None
        self._turn: float | None = None

    def begin_turn(self) -> None:
        self._turn = None

    def counted(self, event: AgentEvent, price: Price | None) -> AgentEvent:
        """Takes an event in; the last one of a turn gets its cost, where that is in dollars."""
        match event:
            case Completed(response=response):
                read, written = response.usage.input_tokens, response.usage.output_tokens
                if read is not None:
                    self.context_tokens = read + (written or 0)
            case Compacted():
                self.context_tokens = None
            case AttemptEnded(estimated=False):
                self.usage += event.usage
                spent = None if price is None else cost(event.usage, price, event.t)
                if spent is not None:
                    self.cost = (self.cost or 0.0) + spent
                    self._turn = (self._turn or 0.0) + spent
            case TurnFinished() if price is not None and price.currency == "USD":
                return replace(event, cost_usd=self._turn)
            case _:
                pass
        return event
