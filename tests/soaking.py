"""A soak: turns with tools through the whole stack, against a provider that fails in every way there is.

Real sockets, one process, an event loop whose waits cost no time. What should not be is raised as soon as it is seen, with
the seed that brings it back.
"""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hasty_loop import HastyLoop
from soak_kinds import BY_NAME, DONE, FINE, KINDS, TOO_LONG, Deck, Kind
from soak_life import FAMILIES, Life, Maker, profile
from soak_provider import WINDOW, Asked, Provider, Turn, marks
from soak_user import IN_A_SUMMARY, INTERRUPTIONS, Plan, User
from soak_witness import Tally, Witness, last, text_of

from mini_agent.core.messages import Message
from mini_agent.lab.server import LabServer, Say
from mini_agent.record import sessions
from mini_agent.wire.exchange import DRAIN_S

TURNS = 20
"""Of one conversation."""

OURS = ("turn", "call ", "exchange")
"""Begin the names of the program's tasks, none of which outlives its turn."""

KEY = "soaking-key-"
"""Begins every key."""


class SoakError(AssertionError):
    """What should not be."""


def soak(
    turns: int,
    seed: int,
    folder: Path,
    kinds: Sequence[Kind] = KINDS,
    interruptions: Sequence[str] = INTERRUPTIONS,
) -> Tally:
    """Runs so many turns; returns what happened.

    folder: an empty one. kinds: what happens to requests. interruptions: what the user does to turns. Raises SoakError.
    """
    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        return runner.run(_Soak(seed, folder, kinds, interruptions).run(turns))


def missing(tally: Tally) -> list[str]:
    """What did not happen though it should have: kinds that never came, or never did what they are for."""
    lacking = [kind.name for kind in KINDS if not tally.attempts[kind.name][kind.ends[0]]]
    return lacking + [name for name in INTERRUPTIONS if not tally.turns[name]]


class _Soak:
    def __init__(self, seed: int, folder: Path, kinds: Sequence[Kind], interruptions: Sequence[str]) -> None:
        self._seed = seed
        self._folder = folder
        self._rng = random.Random(seed)
        self._deck = Deck(kinds, self._rng)
        self._storms = Deck([kind for kind in kinds if kind.transient], self._rng)
        self._user = User(self._rng, interruptions)
        self._problems: list[str] = []
        self._tally = Tally()
        self._provider = Provider(self._rng, self._answer, self._problems.append)
        self._turn = Turn()
        self._taken = 0
        self._keys = 0

    async def run(self, turns: int) -> Tally:
        try:
            return await self._run(turns)
        except Exception as error:  # an exception that gets here is a defect too, and the seed brings it back
            raise SoakError(f"{self._where()}: {error or repr(error)}") from error

    async def _run(self, turns: int) -> Tally:
        conversations = 0
        while self._taken < turns:
            before = _descriptors()
            await self._conversation(conversations, min(TURNS, turns - self._taken))
            await asyncio.sleep(0.1)  # closed sockets are let go of in the loop's next round
            if left := asyncio.all_tasks() - {asyncio.current_task()}:
                self._problems.append(f"tasks are left: {left}")
            if (now := _descriptors()) != before:
                self._problems.append(f"file descriptors: {before} before, {now} after")
            self._raise()
            conversations += 1
        return self._tally

    def _answer(self, asked: Asked) -> tuple[str, Say]:
        kind = self._kind(asked)
        self._tally.seen["requests"] += 1
        return kind.name, kind.make(asked, self._provider)

    def _kind(self, asked: Asked) -> Kind:
        if len(asked.turn.asked) <= asked.turn.storm:
            return self._storms.draw(asked)
        # A summary is asked for seldom, and has to bear whatever an answer does.
        share = 0.6 if asked.is_summary else asked.turn.faults
        drawn = self._deck.draw(asked) if self._rng.random() < share else FINE
        # What is too long can still meet any fault; it can't be answered.
        return BY_NAME[TOO_LONG] if asked.tokens > WINDOW and DONE in drawn.ends else drawn

    async def _conversation(self, number: int, turns: int) -> None:
        family = [*FAMILIES][number % len(FAMILIES)]
        provider = self._provider
        provider.allowed, provider.deepseek = set(), family == "deepseek"
        async with LabServer(provider, deepseek=provider.deepseek, keep=20) as lab:
            witness = Witness(provider, self._problems.append, self._tally)
            maker = Maker(
                self._folder / f"{number}.jsonl",
                profile(family, lab.base_url),
                self._rng,
                self._user.approve,
                lambda token: self._ran(token, witness),
                self._user.queued,
                self._new_key,
            )
            life = maker.begin()
            provider.begin_session()
            try:
                for place in range(turns):
                    self._between_turns(life)
                    is_whole = await self._take_turn(life, witness)
                    self._problems += lab.violations
                    self._raise()
                    if place == turns - 1 or not is_whole or self._rng.random() < 0.15:
                        await self._end(life, is_whole=is_whole)
                        self._raise()
                        if place < turns - 1:
                            self._tally.seen["resumed"] += 1
                            life = maker.resume()
                            provider.begin_session()
            finally:
                await life.session.aclose()

    def _between_turns(self, life: Life) -> None:
        if self._rng.random() < 0.1:
            life.change(self._rng)
        if self._rng.random() < 0.03:
            life.session.clear()
            self._provider.allowed = set()
            self._tally.seen["cleared"] += 1

    async def _take_turn(self, life: Life, witness: Witness) -> bool:
        """False where the user closed the stream, so that the turn has no end."""
        self._taken += 1
        plan = self._user.plan()
        turn = self._turn = self._provider.turn = plan.turn
        witness.begin(turn)
        session = life.session
        if plan.interruption.name == IN_A_SUMMARY or self._rng.random() < 0.03:
            events = session.compact()
        elif self._rng.random() < 0.03:
            events = session.shell("make")
        elif session.is_waiting and self._rng.random() < 0.5:
            events = session.run(None)
        else:
            events = session.run(f"Do thing {self._taken}.")
        is_whole = True
        try:
            is_whole = await self._user.take(plan, session, events, witness)
        except TimeoutError:
            self._problems.append("the turn has no end")
        # What a cancelled request still sets off at the server belongs to this turn; an answer's end may still be read.
        await asyncio.sleep(DRAIN_S + 0.5)
        if left := [task for task in asyncio.all_tasks() if task.get_name().startswith(OURS)]:
            self._problems.append(f"tasks are left behind by the turn: {left}")
        self._count(plan, witness, is_whole=is_whole)
        if is_whole:  # else, what the agent had said to nobody yet ends with it
            self._expect_own(life.conversation.messages, "history")
        return is_whole

    def _count(self, plan: Plan, witness: Witness, *, is_whole: bool) -> None:
        reason = "closed" if not is_whole else witness.ended.reason if witness.ended is not None else ""
        if not reason:
            self._problems.append("the stream ended without the end of the turn")
        kinds = {asked.kind for asked in plan.turn.asked}
        if plan.interruption.is_done and reason in ("closed", "cancelled"):
            kinds.add(plan.interruption.name)
        for kind in kinds:
            self._tally.turns[kind][reason] += 1
        self._tally.seen["turns"] += 1

    async def _end(self, life: Life, *, is_whole: bool) -> None:
        """Closes the session. What its journal holds is what it held itself; but for a turn without an end."""
        lived = life.conversation.sendable()
        await life.session.aclose()
        if life.journal.problem is not None:
            self._problems.append(life.journal.problem)
        loaded = sessions.load(life.journal.path)
        if loaded.skipped:
            self._problems.append(f"{loaded.skipped} lines of the journal can't be read")
        if is_whole and loaded.messages != lived:
            self._problems.append(f"the journal gives another history: {_difference(loaded.messages, lived)}")
        waiting = (loaded.state.is_waiting, loaded.state.is_interrupted)
        if is_whole and waiting != (life.conversation.is_waiting, life.conversation.is_interrupted):
            self._problems.append(f"the journal says that an answer is missing, broke off: {waiting}")
        self._expect_own(loaded.messages, "journal's history")
        if KEY in life.journal.path.read_text(encoding="utf-8"):
            self._problems.append("the journal holds a key")

    def _expect_own(self, messages: tuple[Message, ...], where: str) -> None:
        if strays := marks(text_of(messages)) - self._provider.allowed:
            self._problems.append(f"the {where} has text of answers that were given up: {strays}")

    def _ran(self, token: str, witness: Witness) -> None:
        witness.ran(token)
        self._user.running()

    def _new_key(self) -> str:
        self._keys += 1
        self._provider.key = f"{KEY}{self._keys:03}"
        return self._provider.key

    def _raise(self) -> None:
        if self._problems:
            raise SoakError("; ".join(self._problems))

    def _where(self) -> str:
        return f"seed {self._seed}, turn {self._taken} (requests: {last(self._turn)})"


def _difference(rebuilt: tuple[Message, ...], lived: tuple[Message, ...]) -> str:
    """The first message that differs."""
    for place, (one, other) in enumerate(zip(rebuilt, lived, strict=False)):
        if one != other:
            return f"[{place}] {text_of(one)[:600]} instead of {text_of(other)[:600]}"
    return f"{len(rebuilt)} messages instead of {len(lived)}"


def _descriptors() -> int:
    """How many files this process has open; 0 where the system does not say."""
    with suppress(OSError):
        return sum(1 for _ in Path("/dev/fd").iterdir())
    return 0
