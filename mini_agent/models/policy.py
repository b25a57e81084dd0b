"""What to do about an error: a pure function from the error and what was spent to a decision (product R2-R6, A6).

No sleeping, no logging, no clock: `RetryingModel` carries the decision out, because it has to tell the screen first.
"""

import math
import random
import re
from collections.abc import Iterable
from typing import ClassVar

import msgspec
from tenacity import RetryCallState, Retrying, stop_after_attempt, wait_exponential
from tenacity.wait import wait_base

from mini_agent.core.errors import ErrorKind, ModelError
from mini_agent.core.events import RetryDecision

LONGEST_HINT_S = 120
"""A server that asks to wait longer ends the turn: nobody waits that long for a prompt."""

EMPTY_RETRIES = 2
"""How often an empty answer is asked for again within one request."""

RESAMPLE_S = 0.25
"""The longest pause before an answer that repeated itself is asked for anew: waiting mends nothing, another draw may."""

TIGHT_LOOP = 64
"""Tokens; what of xAI's loop signs is a doom loop."""

_LOOP_IN_THOUGHT = re.compile(r"tail_repetition:([0-9]{1,6})@thinking")

_LINE_FAULTS: frozenset[ErrorKind] = frozenset(
    {
        "connection",
        "cut",
        "protocol",
        "connect_timeout",
        "first_event_timeout",
        "idle_timeout",
        "stall_timeout",
    }
)
"""Faults that lie, or may lie, in the connection."""

_DAY_MINUTES = 24 * 60
_YEAR_S = 365 * 86400


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and how long. Seconds; the cap holds before the jitter.

    fixed: the share of a wait that is certain; the rest is random, up to `spread` of the whole. doom: how often an
    answer that repeats itself is asked for anew, apart from `max_retries` (R5).
    """

    max_retries: int = 4
    base_s: float = 1.0
    cap_s: float = 30.0
    fixed: float = 0.5
    spread: float = 0.5
    doom: int = 2


DEFAULT = RetryPolicy()
PATIENT = RetryPolicy(max_retries=15, base_s=2.0, fixed=0.8, spread=0.4)
"""For runs that nobody watches: a place in a queue is worth waiting for."""


class Spent(msgspec.Struct):
    """What one request has used up so far, and what is left to try.

    retries: out of the budget for transport faults; empty: those of them for empty answers. resamples: out of the doom
    budget. fresh: a connection outside the pool was tried. images: the request has images that can be left out. acted: a
    tool run by the provider has started; risked: it was asked again after that.
    """

    retries: int = 0
    empty: int = 0
    resamples: int = 0
    fresh: bool = False
    images: bool = False
    acted: bool = False
    risked: bool = False


class Again(msgspec.Struct, frozen=True):
    """Ask again after `wait_s` seconds. of: how many such retries there can be in all, as far as is known now."""

    name: ClassVar[RetryDecision]
    wait_s: float
    of: int


class Backoff(Again, frozen=True):
    """The provider is busy."""

    name: ClassVar[RetryDecision] = "backoff"


class FreshConnection(Again, frozen=True):
    """On a connection outside the pool, whose connections may be what is broken."""

    name: ClassVar[RetryDecision] = "fresh_connection"


class Plain(Again, frozen=True):
    """As before, and perhaps with more luck."""

    name: ClassVar[RetryDecision] = "plain"


class WithoutImages(Again, frozen=True):
    """With the images left out, at once and only once."""

    name: ClassVar[RetryDecision] = "without_images"
    wait_s: float = 0.0
    of: int = 1


class Resample(Again, frozen=True):
    """For another answer than one that repeated itself."""

    name: ClassVar[RetryDecision] = "resample"


class ToSession(msgspec.Struct, frozen=True):
    """End with the error: what it takes is another request, or another key."""


class GiveUp(msgspec.Struct, frozen=True):
    """End with the error. why: a word to add to it, None where the error says it all."""

    why: str | None = None


AskAgain = Backoff | FreshConnection | Plain | WithoutImages | Resample
Decision = AskAgain | ToSession | GiveUp


class jittered(wait_base):  # noqa: N801  named as tenacity names its strategies
    """Another wait, part of it fixed and the rest random."""

    def __init__(self, inner: wait_base, policy: RetryPolicy, rng: random.Random) -> None:
        self._inner = inner
        self._policy = policy
        self._random = rng

    def __call__(self, retry_state: RetryCallState) -> float:
        whole = self._inner(retry_state)
        return whole * (self._policy.fixed + self._random.random() * self._policy.spread)


def decide(error: ModelError, spent: Spent, policy: RetryPolicy, rng: random.Random) -> Decision:
    """What is done about `error` (R6)."""
    if error.veto is False:
        return GiveUp("the server says that trying again is no use" if error.retryable else None)
    if spent.acted and spent.risked:
        return GiveUp("a tool run by the provider may have acted")
    if error.kind == "repetition":
        return _resampled(spent, policy, rng)
    if error.refused == "images" or error.kind == "too_large":
        return WithoutImages() if spent.images else ToSession()
    if error.refused is not None or error.kind == "context_overflow":
        return ToSession()
    if not (error.retryable or error.veto):
        return ToSession() if error.kind == "auth" else GiveUp()
    return _again(error, spent, policy, rng)


def _resampled(spent: Spent, policy: RetryPolicy, rng: random.Random) -> Decision:
    if spent.resamples >= policy.doom:
        return GiveUp()
    return Resample(rng.random() * RESAMPLE_S, _within(policy.doom, spent.resamples, spent))


def _again(error: ModelError, spent: Spent, policy: RetryPolicy, rng: random.Random) -> Decision:
    """Another try out of the transport budget, as long as that lasts."""
    hint = _usable(error.retry_after_s)
    if hint > LONGEST_HINT_S:
        return GiveUp(f"the server asks to wait: come back in {_spoken(hint)}")
    of = _within(policy.max_retries, spent.retries, spent)
    if error.kind == "empty":
        of = min(of, spent.retries + EMPTY_RETRIES - spent.empty)
    state = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
    state.attempt_number = spent.retries + 1
    if stop_after_attempt(of + 1)(state):
        return GiveUp()
    wait = jittered(wait_exponential(multiplier=policy.base_s, max=policy.cap_s), policy, rng)(state)
    wait_s = max(wait, hint)
    if error.kind == "rate_limit" or _is_overload(error):
        return Backoff(wait_s, of)
    if not spent.fresh and _is_of_the_line(error):
        return FreshConnection(wait_s, of)
    return Plain(wait_s, of)


def _within(budget: int, used: int, spent: Spent) -> int:
    """How many there can be in all: after a tool run by the provider has started, one more at most (R2)."""
    return min(budget, used + 1) if spent.acted else budget


def _is_overload(error: ModelError) -> bool:
    """Whether the provider says that it has too much to do. A bare 503 says only that somebody on the way can't serve."""
    if error.kind != "overloaded":
        return False
    words = f"{error.code} {error.provider_type}".lower()
    return error.status in (None, 529) or "overload" in words or "slow_down" in words


def _is_of_the_line(error: ModelError) -> bool:
    """Whether another connection may mend it: faults of this one, and whatever a server or a gateway broke down with."""
    if error.kind in _LINE_FAULTS:
        return True
    return error.kind in ("provider", "overloaded") and (error.status is None or error.status >= 500)


def is_doom_loop(labels: Iterable[str]) -> bool:
    """Whether what a provider reports of an answer under way means that it is to be given up.

    xAI names a sign and a channel (`tail_repetition:4@thinking`, `low_logprob@response`). Its own client gives up where
    the thinking repeats itself within 64 tokens, and leaves the rest to whoever reads it. A label without a channel is
    another vendor's, and taken at its word.
    """
    return any("@" not in label or _is_tight(_LOOP_IN_THOUGHT.fullmatch(label)) for label in labels)


def _is_tight(found: re.Match[str] | None) -> bool:
    return found is not None and int(found[1]) <= TIGHT_LOOP


def _usable(hint: float | None) -> float:
    """Seconds that the server asks to wait; 0 where it says nothing that can be waited for."""
    return hint if hint is not None and math.isfinite(hint) and hint > 0 else 0.0


def _spoken(seconds: float) -> str:
    """A long time in words, in two units at most, rounded up: who comes back too early is sent away again."""
    if seconds > _YEAR_S:
        return "more than a year"
    minutes = math.ceil(seconds / 60)
    if minutes > _DAY_MINUTES:
        minutes = math.ceil(minutes / 60) * 60
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = ((days, "day" if days == 1 else "days"), (hours, "h"), (minutes, "min"))
    return " ".join(f"{count} {unit}" for count, unit in units if count)
