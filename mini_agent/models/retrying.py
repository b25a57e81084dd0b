"""A Streamer that asks again: it carries out what `policy` decides, and tells before it waits (product R1-R8).

Its budgets belong to one request; nothing of an attempt that was given up is passed on as part of the answer, because
each attempt begins with a `StreamStarted` that voids what came before.
"""

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import assert_never

from mini_agent.core.errors import DeadlineError, ModelError, RepetitionError
from mini_agent.core.events import (
    BackendToolStarted,
    Channel,
    ChannelToken,
    DoomLoopSignal,
    ImagesStripped,
    Notice,
    Retrying,
    StreamEvent,
    StreamStarted,
)
from mini_agent.core.messages import Request
from mini_agent.core.repeated_text import TextGuard, label
from mini_agent.models.base import Attempt, Streamer, new_attempt
from mini_agent.models.images import without_images
from mini_agent.models.policy import (
    AskAgain,
    Backoff,
    FreshConnection,
    GiveUp,
    Plain,
    Resample,
    RetryPolicy,
    Spent,
    ToSession,
    WithoutImages,
    decide,
    is_doom_loop,
)

_ACTED = "a tool that the provider runs had started: the next attempt may make it act again"


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
        """The events of all attempts, with a `Retrying` before each further one. Raises the last one's ModelError."""
        course = _Course(request, attempt or new_attempt(), self._policy, self._random, self._now)
        while True:
            try:
                async with aclosing(self._model.stream(course.request, course.attempt)) as events:
                    async for event in events:
                        course.see(event)
                        yield event
                return
            except ModelError as error:
                failed = error
            # From here on the attempt's stream is closed: whoever holds these events, or a wait, keeps nothing open.
            if isinstance(failed, RepetitionError):
                yield course.signal(failed)
            said, wait_s = course.again(failed)
            for event in said:
                yield event
            if wait_s:
                await self._sleep(wait_s)

    async def aclose(self) -> None:
        await self._model.aclose()


class _Course:
    """One request on its way through its attempts. request, attempt: what is asked now."""

    def __init__(
        self,
        request: Request,
        attempt: Attempt,
        policy: RetryPolicy,
        rng: random.Random,
        now: Callable[[], float],
    ) -> None:
        bare, images = without_images(request)
        refused = "images" in attempt.without  # in an earlier request, where it was said
        self.request = bare if refused else request
        self.attempt = attempt
        self._bare = bare
        self._images = images
        self._policy = policy
        self._random = rng
        self._now = now
        self._first = attempt.number
        self._spent = Spent(images=images > 0 and not refused)
        self._guards: defaultdict[Channel, TextGuard] = defaultdict(TextGuard)

    def see(self, event: StreamEvent) -> None:
        """Looks at an event before it is passed on. Raises RepetitionError where the answer repeats itself without end."""
        match event:
            case ChannelToken(channel=channel, text=text):
                unit = self._guards[channel].feed(text)
                if unit is not None:
                    raise self._repetition((label(unit),))
            case StreamStarted():
                self._guards.clear()
            case BackendToolStarted():
                self._spent.acted = True
            case DoomLoopSignal(labels=labels) if is_doom_loop(labels):
                raise self._repetition(labels)
            case _:
                pass

    def signal(self, error: RepetitionError) -> DoomLoopSignal:
        """What is said of an attempt that was given up because it repeated itself."""
        return DoomLoopSignal(
            t=self._now(),
            request_id=self.attempt.request_id,
            attempt=self.attempt.number,
            labels=error.labels,
        )

    def again(self, error: ModelError) -> tuple[list[StreamEvent], float]:
        """Sets out for the next attempt: what is said before it, and the seconds to wait then.

        Raises `error` where there is none, with a word on why and after how many.
        """
        decision = decide(error, self._spent, self._policy, self._random)
        match decision:
            case GiveUp(why):
                raise self._ended(error, why)
            case ToSession():
                raise error
            case Backoff() | FreshConnection() | Plain() | WithoutImages() | Resample():
                self._in_time(decision.wait_s, error)
                said = self._said(decision, error)
                self._go_on(decision)
                return said, decision.wait_s
            case _:
                assert_never(decision)

    def _said(self, decision: AskAgain, error: ModelError) -> list[StreamEvent]:
        t, request_id, number = self._now(), self.attempt.request_id, self.attempt.number
        told = error.info()
        said: list[StreamEvent] = []
        if self._spent.acted:
            said.append(Notice(t=t, level="warning", text=_ACTED))
        if isinstance(decision, WithoutImages):
            said.append(
                ImagesStripped(
                    t=t, request_id=request_id, attempt=number, count=self._images, reason=told.message
                )
            )
        said.append(
            Retrying(
                t=t,
                request_id=request_id,
                attempt=number,
                retry=self._spend(decision, error),
                max_retries=decision.of,
                wait_s=decision.wait_s,
                decision=decision.name,
                error=told,
            )
        )
        return said

    def _spend(self, decision: AskAgain, error: ModelError) -> int:
        """Takes it out of the budget that pays for it; which one of that budget it is."""
        spent = self._spent
        spent.risked = spent.acted
        match decision:
            case WithoutImages():
                spent.images = False
                return 1
            case Resample():
                spent.resamples += 1
                return spent.resamples
            case Backoff() | FreshConnection() | Plain():
                spent.retries += 1
                spent.empty += error.kind == "empty"
                spent.fresh |= isinstance(decision, FreshConnection)
                return spent.retries
            case _:
                assert_never(decision)

    def _go_on(self, decision: AskAgain) -> None:
        without = self.attempt.without
        if isinstance(decision, WithoutImages):
            self.request = self._bare
            without |= {"images"}
        self.attempt = replace(
            self.attempt,
            number=self.attempt.number + 1,
            fresh_connection=isinstance(decision, FreshConnection),
            without=without,
        )

    def _repetition(self, labels: tuple[str, ...]) -> RepetitionError:
        error = RepetitionError(f"the model repeats itself without end: {', '.join(labels)}", labels)
        error.request_id, error.attempt = self.attempt.request_id, self.attempt.number
        return error

    def _in_time(self, wait_s: float, error: ModelError) -> None:
        """Raises DeadlineError where the total deadline would pass during the wait."""
        if self.attempt.deadline is None:
            return
        if wait_s >= self.attempt.deadline - asyncio.get_running_loop().time():
            late = DeadlineError(
                f"no time is left for another try after: {error.info().message}", kind="total_timeout"
            )
            late.request_id, late.attempt = self.attempt.request_id, self.attempt.number
            raise self._ended(late) from error

    def _ended(self, error: ModelError, why: str | None = None) -> ModelError:
        """`error`, with a word on how often it was tried."""
        retries = self.attempt.number - self._first
        words = [f"gave up after {retries} {'retry' if retries == 1 else 'retries'}"] if retries else []
        words += [why] if why else []
        if words:
            error.message = f"{error.message} ({'; '.join(words)})"
        return error
