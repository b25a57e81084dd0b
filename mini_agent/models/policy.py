"""What to do about an error: a pure function from the error and what was spent to a decision (product R2-R4, A6).

No sleeping, no logging, no clock: `RetryingModel` carries the decision out, because it has to tell the screen first.
"""

import random

import msgspec
from tenacity import RetryCallState, Retrying, stop_after_attempt, wait_exponential
from tenacity.wait import wait_base

from mini_agent.core.errors import ModelError
from mini_agent.core.events import RetryDecision

LONGEST_HINT_S = 120
"""A server that asks to wait longer ends the turn: nobody waits that long for a prompt."""

EMPTY_RETRIES = 2
"""How often an empty answer is asked for again within one request."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and how long. Seconds; the cap holds before the jitter.

    fixed: the share of a wait that is certain; the rest is random, up to `spread` of the whole.
    """

    max_retries: int = 4
    base_s: float = 1.0
    cap_s: float = 30.0
    fixed: float = 0.5
    spread: float = 0.5


DEFAULT = RetryPolicy()
PATIENT = RetryPolicy(max_retries=15, base_s=2.0, fixed=0.8, spread=0.4)
"""For runs that nobody watches: a place in a queue is worth waiting for."""


class Spent(msgspec.Struct):
    """What one request has used up so far. acted: a tool run by the provider has started."""

    retries: int = 0
    empty: int = 0
    acted: bool = False


class Retry(msgspec.Struct, frozen=True):
    """Ask again after `wait_s`. of: how many retries there can be in all, as far as is known now."""

    wait_s: float
    decision: RetryDecision
    of: int


class GiveUp(msgspec.Struct, frozen=True):
    """End with the error. why: a word to add to it, None where the error says it all."""

    why: str | None = None


Decision = Retry | GiveUp


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
    """Whether the same request is asked again, and after what wait."""
    if error.veto is False or not (error.retryable or error.veto):
        return GiveUp()
    hint = error.retry_after_s
    if hint is not None and hint > LONGEST_HINT_S:
        return GiveUp(f"the server asks to wait {hint:.0f} s: come back then")
    if error.kind == "empty" and spent.empty >= EMPTY_RETRIES:
        return GiveUp(f"asked {spent.empty + 1} times")
    allowed = min(policy.max_retries, 1) if spent.acted else policy.max_retries
    state = RetryCallState(retry_object=Retrying(), fn=None, args=(), kwargs={})
    state.attempt_number = spent.retries + 1
    if stop_after_attempt(allowed + 1)(state):
        return GiveUp(f"gave up after {_count(spent.retries)}" if spent.retries else None)
    wait = jittered(wait_exponential(multiplier=policy.base_s, max=policy.cap_s), policy, rng)(state)
    decision: RetryDecision = "backoff" if error.kind in ("rate_limit", "overloaded") else "plain"
    of = min(allowed, spent.retries + EMPTY_RETRIES - spent.empty) if error.kind == "empty" else allowed
    return Retry(max(wait, hint or 0.0), decision, of)


def _count(retries: int) -> str:
    return "1 retry" if retries == 1 else f"{retries} retries"
