"""The deadlines of one attempt, as plain accounting (product W9).

Only waiting counts: the caller says how long it waited for the socket, never more than it was allowed to
(`allowance_s`). Time in which the consumer holds an event is not waiting. Because one wait counts for at most its
allowance, a process that was stopped, or a machine that slept, loses one tick and not its attempt: a deadline that
would fire late is thereby re-armed.
"""

from mini_agent.core.errors import DeadlineError, DeadlineKind
from mini_agent.core.profile import Deadlines

TICK_S = 1.0
"""The longest single wait: after it the screen is told that nothing came."""

AFTER_FINISH_S = 5.0
"""How long the usage and the end mark are waited for once the answer is complete."""

_NAMES: dict[DeadlineKind, str] = {
    "first_event_timeout": "no event came within",
    "idle_timeout": "nothing came for",
    "stall_timeout": "bytes came but nothing of the answer for",
    "total_timeout": "the request with its retries took longer than",
}


class Watch:
    """What has been waited for since when. Times are seconds.

    total_left_s: what is left of the total deadline, None for none; total_s names it in the message.
    """

    def __init__(self, deadlines: Deadlines, *, stream: bool, total_left_s: float | None) -> None:
        self._deadlines = deadlines
        self._first = deadlines.first_event_s if stream else deadlines.whole_answer_s
        self._total_left = total_left_s
        self._waited = 0.0
        self._since_byte = 0.0
        self._since_progress = 0.0
        self._sent_after: float | None = None
        self._has_event = False
        self._finished_after: float | None = None

    @property
    def silent_s(self) -> float:
        """Waited since the last byte."""
        return self._since_byte

    def waited(self, seconds: float) -> None:
        self._waited += seconds
        self._since_byte += seconds
        self._since_progress += seconds

    def sent(self) -> None:
        """The request is out: the wait for the first event begins."""
        self._sent_after = self._waited

    def byte(self) -> None:
        self._since_byte = 0.0

    def event(self) -> None:
        """A decoded event: the wait for the first one is over."""
        if not self._has_event:
            self._has_event = True
            self._since_progress = 0.0

    def progress(self) -> None:
        """A piece of the answer: reasoning, text, arguments, a tool run by the provider."""
        self._since_progress = 0.0

    def finish(self) -> None:
        """The answer is complete; only its usage and its end mark may follow. From here on nothing can expire."""
        if self._finished_after is None:
            self._finished_after = self._waited

    def allowance_s(self) -> float:
        """How long the next wait may be."""
        return max(
            0.0, min((limit - spent for _, limit, spent in self._running()), default=TICK_S, key=float)
        )

    def expired(self) -> DeadlineError | None:
        """The deadline that has passed, if one has."""
        for kind, limit, spent in self._running():
            if kind is not None and spent >= limit:
                said = self._deadlines.total_s if kind == "total_timeout" else limit
                return DeadlineError(f"{_NAMES[kind]} {said:g} s", kind=kind)
        return None

    @property
    def over(self) -> bool:
        """Whether an answer that is complete has been waited on long enough, whatever else came."""
        return self._finished_after is not None and self._waited - self._finished_after >= AFTER_FINISH_S

    def _running(self) -> list[tuple[DeadlineKind | None, float, float]]:
        """The clocks that run now: kind, limit, spent. The tick has no kind and is always there."""
        clocks: list[tuple[DeadlineKind | None, float, float]] = [(None, TICK_S, 0.0)]
        if self._finished_after is not None:
            return clocks
        if self._total_left is not None:
            clocks.append(("total_timeout", self._total_left, self._waited))
        if not self._has_event:
            if self._sent_after is not None:  # before that, connecting has its own deadline
                clocks.append(("first_event_timeout", self._first, self._waited - self._sent_after))
        else:
            clocks.append(("idle_timeout", self._deadlines.idle_s, self._since_byte))
            clocks.append(("stall_timeout", self._deadlines.stall_s, self._since_progress))
        return [clock for clock in clocks if clock[1] > 0 or clock[0] == "total_timeout"]
