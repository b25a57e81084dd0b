"""A Streamer that asks again: it carries out what `policy` decides, and tells before it waits (product R1-R4, R7, R8).

Its budgets belong to one request; nothing of an attempt that was given up is passed on as part of the answer, because
each attempt begins with a `StreamStarted` that voids what came before.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from mini_agent.core.errors import DeadlineError, ModelError
from mini_agent.core.events import BackendToolStarted, Retrying, StreamEvent
from mini_agent.core.messages import Request
from mini_agent.models.base import Attempt, Streamer, new_attempt
from mini_agent.models.policy import GiveUp, RetryPolicy, Spent, decide


class RetryingModel:
    """A `Streamer` around a `Streamer`.

    rng, sleep and now (unix seconds) are given by tests that want to know.
    """

    def __init__(
        self,
        model: Streamer,
        policy: RetryPolicy,
        *,
        rng: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._model = model
        self._policy = policy
        self._random = rng
        self._sleep = sleep
        self._now = now

    async def stream(
        self, request: Request, attempt: Attempt | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of all attempts, with a `Retrying` before each wait. Raises the last attempt's ModelError."""
        attempt = attempt or new_attempt()
        spent = Spent()
        while True:
            try:
                async with aclosing(self._model.stream(request, attempt)) as events:
                    async for event in events:
                        if isinstance(event, BackendToolStarted):
                            spent.acted = True
                        yield event
                return
            except ModelError as error:
                retrying = self._next(error, spent, attempt)
            yield retrying
            await self._sleep(retrying.wait_s)
            attempt = replace(attempt, number=attempt.number + 1)

    async def aclose(self) -> None:
        await self._model.aclose()

    def _next(self, error: ModelError, spent: Spent, attempt: Attempt) -> Retrying:
        """What is said before the next attempt; `spent` grows by it. Raises `error` where there is none."""
        decision = decide(error, spent, self._policy, self._random)
        if isinstance(decision, GiveUp):
            if decision.why is not None:
                error.message = f"{error.message} ({decision.why})"
            raise error
        if attempt.deadline is not None:
            left = attempt.deadline - asyncio.get_running_loop().time()
            if decision.wait_s >= left:
                raise DeadlineError(
                    f"no time is left for another try after: {error.message}", kind="total_timeout"
                ) from error
        spent.retries += 1
        spent.empty += error.kind == "empty"
        return Retrying(
            t=self._now(),
            request_id=attempt.request_id,
            attempt=attempt.number,
            retry=spent.retries,
            max_retries=decision.of,
            wait_s=decision.wait_s,
            decision=decision.decision,
            error=error.info(),
        )
