"""A model that says what a test wrote down: a `Streamer` of scripted answers."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from mini_agent.core.events import (
    ChannelToken,
    Completed,
    ImagesStripped,
    Retrying,
    StreamEvent,
    StreamStarted,
)
from mini_agent.core.messages import Request, Response, Text
from mini_agent.models.base import Attempt, new_attempt


class Hang:
    """In a script: stay silent for ever after what was said so far."""


class ScriptedModel:
    """Plays one item of the script a request: a Response, an error to raise, or a list of text pieces, errors and
    `Hang`.
    """

    def __init__(self, *script: object) -> None:
        self._script = list(script)
        self.requests: list[Request] = []
        self.attempts: list[Attempt] = []
        self.hanging = asyncio.Event()
        self.closed = 0

    async def stream(
        self, request: Request, attempt: Attempt | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        attempt = attempt or new_attempt()
        self.requests.append(request)
        self.attempts.append(attempt)
        item = self._script.pop(0)
        at = {"t": 0.0, "request_id": attempt.request_id, "attempt": attempt.number}
        try:
            yield StreamStarted(**at, model="scripted", api="none")
            parts: Sequence[object] = item if isinstance(item, list) else [item]
            for part in parts:
                if isinstance(part, BaseException):
                    raise part
                if isinstance(part, Retrying | ImagesStripped):
                    yield part
                if part is Hang:
                    self.hanging.set()
                    await asyncio.Event().wait()
                if isinstance(part, str):
                    yield ChannelToken(**at, n=1, channel="text", text=part)
                if isinstance(part, Response):
                    for block in part.blocks:
                        if isinstance(block, Text):
                            yield ChannelToken(**at, n=1, channel="text", text=block.text)
                    yield Completed(**at, response=part)
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        pass
