"""Follows the events of a soak's turns and says what should not be."""

from collections import Counter, defaultdict
from collections.abc import Callable

import msgspec
from soak_kinds import BY_NAME
from soak_provider import Asked, Provider, Turn, marks

from mini_agent.core.events import (
    AgentEvent,
    AttemptEnded,
    ChannelToken,
    Compacted,
    Completed,
    Failed,
    Retrying,
    StreamStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from mini_agent.core.messages import Response

UNFIT = ("max_tokens", "content_filter", "refusal")
"""Ends of what is no summary."""

NOT_RUN = ("context_overflow", *UNFIT)
"""Ends of an answer whose calls must not be run."""

BY_USER = "user-"
"""Begins the ids of calls that the user makes."""

FAILURES = {"failed": (1,), "repetition": (0, 1)}
"""How many times a turn that ended so says that it failed; any other never does."""


def text_of(value: object) -> str:
    """A value as a text in which marks can be found."""
    return msgspec.json.encode(value).decode()


class Tally:
    """What happened in a soak.

    attempts, turns: by kind, how the attempts ended that had it, and the turns in which it came. seen: everything else.
    """

    def __init__(self) -> None:
        self.attempts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.turns: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.seen: Counter[str] = Counter()


class Witness:
    """Watches one conversation. report: is told of each thing that should not be."""

    def __init__(self, provider: Provider, report: Callable[[str], None], tally: Tally) -> None:
        self._provider = provider
        self._report = report
        self._tally = tally
        self._runnable: Counter[str] = Counter()
        self._ran: Counter[str] = Counter()
        self.begin(Turn())

    def begin(self, turn: Turn) -> None:
        self._turn = turn
        self._partial: list[str] = []
        self._begun = self._was_cancelled = False
        self._attempts = self._attempts_ended = self._failed = 0
        self._called: Counter[str] = Counter()
        self._started: Counter[str] = Counter()
        self._finished: Counter[str] = Counter()
        self._completed: set[int] = set()
        self.ended: TurnFinished | None = None

    def ran(self, token: str) -> None:
        """A tool runs, by a call with this token."""
        self._ran[token] += 1
        self._tally.seen["tools run"] += 1
        if self._ran[token] > self._runnable[token]:
            self._report(f"a tool ran for a call that was not made, or once too often: {token}")

    def see(self, event: AgentEvent) -> None:
        self._tally.seen[type(event).__name__] += 1
        if self.ended is not None:
            self._report(f"{type(event).__name__} came after the end of its turn")
        if self._begun is isinstance(event, TurnStarted):
            self._report(f"{type(event).__name__} is in the wrong place")
        self._begun = True
        match event:
            case StreamStarted():
                self._attempts += 1
                self._partial.clear()
            case Retrying():
                self._partial.clear()
                self._expect_no_attempt("Retrying")
            case ChannelToken(channel="text"):
                self._partial.append(event.text)
            case Completed():
                self._partial.clear()
                self._complete(event.response)
            case AttemptEnded():
                self._end_attempt(event)
            case ToolStarted():
                self._count(self._started, event.call_id, "started")
            case ToolFinished():
                self._count(self._finished, event.call_id, "finished")
            case Compacted():
                self._sum_up(self._provider.summary)
            case Failed():
                self._failed += 1
                self._partial.clear()
                self._expect_no_attempt("Failed")
            case TurnFinished():
                self._finish(event)
            case _:
                pass

    def keep_partial(self) -> None:
        """The user broke the answer off here: what it had said is a part of the conversation."""
        said = marks("".join(self._partial))
        if self._turn.asked and said - {self._turn.asked[-1].number}:
            self._report(f"what a broken off answer had said is of several answers: {said}")
        self._provider.allowed |= said

    def _sum_up(self, asked: Asked | None) -> None:
        """The history was made shorter. asked: by a summary; None where results were cut."""
        if asked is None:
            return
        self._provider.allowed.add(asked.number)
        if asked.answer is None or asked.answer.stop_reason in UNFIT or not asked.answer.text.strip():
            self._report(f"the history was replaced by what is no summary: {asked.kind}, {asked.answer}")

    def _complete(self, response: Response) -> None:
        asked = self._turn.asked[-1] if self._turn.asked else None
        if asked is None or asked.answer is None or asked.number in self._completed:
            self._report("an answer is complete that was not given, or is so twice")
            return
        self._completed.add(asked.number)
        if response.text != asked.answer.text:
            self._report(f"{asked.kind}: {response.text!r} is not what was said: {asked.answer.text!r}")
        if strays := marks(text_of(response)) - asked.own:
            self._report(f"{asked.kind}: an answer has text of others: {strays}")
        self._provider.allowed.add(asked.number)
        for call in response.tool_calls:
            self._called[call.id] += 1
            if response.stop_reason not in NOT_RUN:
                self._runnable[str(call.arguments.get("token"))] += 1

    def _end_attempt(self, event: AttemptEnded) -> None:
        place = self._attempts_ended
        self._attempts_ended += 1
        if event.outcome == "cancelled":
            self._was_cancelled = True
        else:
            self._partial.clear()
        if place >= len(self._turn.asked):  # cancelled before its request arrived
            if event.outcome != "cancelled":
                self._report(f"an attempt {event.outcome} without a request: {event.error}")
            return
        asked = self._turn.asked[place]
        end = event.error.kind if event.error is not None else event.outcome
        self._tally.attempts[asked.kind][end] += 1
        if end not in (*BY_NAME[asked.kind].ends, "cancelled"):
            self._report(f"{asked.kind}: the attempt ended with {end}: {event.error}")

    def _expect_no_attempt(self, what: str) -> None:
        if self._attempts != self._attempts_ended:
            self._report(f"{what} came before the end of the attempt was told")

    def _count(self, counts: Counter[str], call_id: str, what: str) -> None:
        if call_id.startswith(BY_USER):
            return
        counts[call_id] += 1
        if counts[call_id] > self._called[call_id]:
            self._report(f"call {call_id} {what}, and was not made, or not as often")

    def _finish(self, event: TurnFinished) -> None:
        self.ended = event
        self._expect_no_attempt("TurnFinished")
        self._tally.seen[f"turns {event.reason}"] += 1
        if self._failed not in FAILURES.get(event.reason, (0,)):
            self._report(f"a turn ended {event.reason} and said {self._failed} times that it failed")
        if event.reason == "cancelled":
            self.keep_partial()
            if self._partial and event.text != "".join(self._partial):
                self._report(f"{event.text!r} is not what was said before the cancel")
            return
        if self._was_cancelled:
            self._report(f"an attempt was cancelled in a turn that ended {event.reason}")
        if self._finished != self._called:
            self._report(f"calls {self._called} have the results {self._finished}")


def last(turn: Turn, count: int = 6) -> str:
    """The last things that happened to a turn's requests."""
    tail: list[Asked] = turn.asked[-count:]
    return ", ".join(f"{asked.number} {asked.kind}" for asked in tail)
