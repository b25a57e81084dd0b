"""Calls made over and over: the same one, or a short cycle of them (product A5).

Only the calls count, not their results: a model that asks for the same thing a fourth time has not read the third
answer. Text that repeats itself within one stream is another matter (R6).
"""

from collections import deque
from typing import Literal

import msgspec

LONGEST = 4
"""Calls in the longest cycle that is looked for. Longer ones are left to the cap on steps: honest work has those too."""
ROUNDS = 3
"""How often a cycle has to be run through until it is one: the second time may be a second look."""


class Repetition(msgspec.Struct, frozen=True):
    """What is to be done about one call.

    verdict: `warn`: tell the model, with this call's result; `ask`: it went on after the warning, so the user decides.
    period: how many calls the cycle has, 1 for the same call again and again. times: how often it has been run through,
    this call included.
    """

    verdict: Literal["ok", "warn", "ask"]
    period: int = 0
    times: int = 0


FINE = Repetition("ok")


class CallGuard:
    """Sees every call in the order in which the model made them.

    A repetition is warned of once, at its third round, and asked about when the round after that is complete, and at every
    call that still goes on with it. One that was broken off is forgotten; the next is warned of anew.
    """

    def __init__(self) -> None:
        self._calls: deque[tuple[str, str]] = deque(maxlen=LONGEST * ROUNDS)
        self._period = 0  # of the repetition that was warned of
        self._since = 0  # calls of it since the warning

    def reset(self) -> None:
        """Forgets everything: a new turn, or the user wants it to go on."""
        self._calls.clear()
        self._period = self._since = 0

    def feed(self, name: str, arguments: str) -> Repetition:
        """Takes the next call. arguments: in a form in which equal ones are equal."""
        self._calls.append((name, arguments))
        if self._period and self._calls[-1] == self._calls[-1 - self._period]:
            self._since += 1
            if self._since < self._period:
                return FINE
            return Repetition("ask", self._period, ROUNDS + self._since // self._period)
        self._period = self._since = 0
        for period in range(LONGEST, 0, -1):  # the longest: three of one may be a part of it
            if self._repeats(period):
                self._period = period
                return Repetition("warn", period, ROUNDS)
        return FINE

    def _repeats(self, period: int) -> bool:
        """Whether the last calls are one cycle of `period` calls, run through ROUNDS times."""
        last = list(self._calls)[-period * ROUNDS :]
        return len(last) == period * ROUNDS and last[period:] == last[:-period]
