"""One conversation in use: what a front end runs turns on. It implements `ui.ports.SessionPort`."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from mini_agent.agent.loop import Agent
from mini_agent.core.events import AgentEvent, Notice
from mini_agent.models.base import Streamer


class Session:
    """Owns the agent and the model's connections."""

    def __init__(
        self,
        agent: Agent,
        model: Streamer,
        problems: Sequence[str] = (),
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """problems: what could not be loaded, told with the first turn."""
        self._agent = agent
        self._model = model
        self._problems = list(problems)
        self._now = now

    async def run(self, prompt: str) -> AsyncGenerator[AgentEvent, None]:
        """One turn; its last event is `TurnFinished`. Close it with `aclosing`."""
        async with aclosing(self._agent.run(prompt)) as events:
            async for event in events:
                yield event
                while self._problems:
                    yield Notice(t=self._now(), level="warning", text=self._problems.pop(0))

    def cancel(self) -> None:
        """Ends the turn at once."""
        self._agent.cancel()

    async def aclose(self) -> None:
        await self._model.aclose()
