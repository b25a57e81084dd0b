"""The user of a soak: what is asked in a turn, how questions are answered, and when there has been enough of it."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from soak_provider import Asked, Turn
from soak_witness import Witness

from mini_agent.core.events import AgentEvent, ChannelToken, Retrying, ToolCallDelta
from mini_agent.core.permission import ApprovalRequest, Decision
from mini_agent.session import Session

PATIENCE_S = 100_000
"""Seconds, by the loop's clock, after which a turn hangs: no wait between two attempts is longer than two minutes."""

CLOSE, TWICE, LATER = "close the stream", "cancel twice", "cancel after a while"
AT_A_QUESTION, IN_A_TOOL = "cancel at a question", "cancel in a tool"
IN_A_WAIT, AFTER_A_RETRY = "cancel in a wait", "cancel after a retry"
AT_A_REQUEST, IN_A_SUMMARY = "cancel at a request", "cancel in a summary"
AT_AN_EVENT: dict[str, Callable[[AgentEvent], bool]] = {
    CLOSE: lambda event: True,
    TWICE: lambda event: True,
    "cancel at an event": lambda event: True,
    "cancel in the text": lambda event: isinstance(event, ChannelToken),
    "cancel in arguments": lambda event: isinstance(event, ToolCallDelta),
    IN_A_WAIT: lambda event: isinstance(event, Retrying),
    AFTER_A_RETRY: lambda event: isinstance(event, ChannelToken | ToolCallDelta) and event.attempt > 1,
}
"""Interruptions that come at the first event of their kind, from a certain one on."""

INTERRUPTIONS = (*AT_AN_EVENT, LATER, AT_A_QUESTION, IN_A_TOOL, AT_A_REQUEST, IN_A_SUMMARY)
"""What the user does to a turn. One whose stream was closed has no end; all others are cancelled."""

Events = AsyncGenerator[AgentEvent, None]


@dataclass
class Interruption:
    """at: from which event of the turn on, or after how many seconds. is_done: whether it came to that."""

    name: str
    at: float
    is_done: bool = False


@dataclass
class Plan:
    """One turn. slow_s: how long the user, or the screen, takes for each event; None: no time at all."""

    turn: Turn
    interruption: Interruption
    slow_s: float | None = None


class User:
    """Takes one turn after the other. interruptions: what is done to some of them."""

    def __init__(self, rng: random.Random, interruptions: Sequence[str]) -> None:
        self._rng = rng
        self._interruptions = interruptions
        self._interruption = Interruption("", 0)
        self._cancel: Callable[[], None] = _nothing
        self._queue: list[str] = []

    def plan(self) -> Plan:
        rng = self._rng
        turn = Turn(calls=rng.choice((0, 0.5, 0.5, 0.7, 1)), faults=rng.choice((0, 0.3, 0.3, 0.6)))
        if rng.random() < 0.06:
            turn.storm = 100
        name = rng.choice(self._interruptions) if rng.random() < 0.4 else ""
        if name in (IN_A_WAIT, AFTER_A_RETRY):
            turn.storm = 1
        at = rng.uniform(0, 20) if name == LATER else rng.choice((0, rng.expovariate(1 / 30)))
        return Plan(turn, Interruption(name, at), rng.choice((*(None,) * 12, *(0,) * 6, 0.02)))

    async def take(self, plan: Plan, session: Session, events: Events, witness: Witness) -> bool:
        """One turn to its end; False where the user closed its stream. events: the session's, of that turn.

        Raises TimeoutError where it has no end.
        """
        self._interruption, self._cancel = plan.interruption, session.cancel
        plan.turn.hook = self._asked
        timer = asyncio.get_running_loop().call_later(plan.interruption.at, self._interrupt, LATER)
        try:
            async with asyncio.timeout(PATIENCE_S), aclosing(events) as told:
                count = 0
                async for event in told:
                    witness.see(event)
                    if plan.slow_s is not None:
                        await asyncio.sleep(plan.slow_s)
                    count += 1
                    if count > plan.interruption.at and witness.ended is None and self._is_enough(event):
                        witness.keep_partial()
                        return False
        finally:
            self._interruption = Interruption("", 0)
            timer.cancel()
        return True

    async def approve(self, request: ApprovalRequest) -> Decision:
        """An answer to a question: mostly yes, after a while."""
        if self._interrupt(AT_A_QUESTION):
            await asyncio.sleep(PATIENCE_S)
        await asyncio.sleep(self._rng.choice((0, 0, 3)))
        repeats = "shall it go on" in request.reason
        return Decision(self._rng.random() < (0.3 if repeats else 0.9))

    def running(self) -> None:
        """A tool runs."""
        if self._rng.random() < 0.05:
            self._queue.append("And one more thing.")
        self._interrupt(IN_A_TOOL)

    def queued(self) -> Sequence[str]:
        """What was written while the turn ran."""
        queue, self._queue = self._queue, []
        return queue

    def _asked(self, asked: Asked) -> None:
        self._interrupt(IN_A_SUMMARY if asked.is_summary else AT_A_REQUEST)

    def _is_enough(self, event: AgentEvent) -> bool:
        """Interrupts the turn where this is the event for it; whether its stream is to be closed."""
        name = self._interruption.name
        return name in AT_AN_EVENT and AT_AN_EVENT[name](event) and self._interrupt(name) and name == CLOSE

    def _interrupt(self, name: str) -> bool:
        """Cancels the turn where this is what was planned for it; whether it was."""
        interruption = self._interruption
        if interruption.name != name or interruption.is_done:
            return False
        interruption.is_done = True
        if name != CLOSE:
            self._cancel()
        if name == TWICE:
            asyncio.get_running_loop().call_soon(self._cancel)
        return True


def _nothing() -> None:
    """There is no turn yet."""
