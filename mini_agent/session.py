"""One conversation in use: what a front end runs turns on. It implements `ui.ports.SessionPort`."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from mini_agent.agent.loop import Agent
from mini_agent.core.events import AgentEvent, Notice
from mini_agent.models.base import Streamer
from mini_agent.record.debug import DebugLog


class Session:
    """Owns the agent and the model's connections."""

    def __init__(
        self,
        agent: Agent,
        model: Streamer,
        problems: Sequence[str] = (),
        *,
        log: DebugLog | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """problems: what could not be loaded, told with the first turn. log: sees each event before anyone else."""
        self._agent = agent
        self._model = model
        self._problems = list(problems)
        self._log = log
        self._now = now

    async def run(self, prompt: str) -> AsyncGenerator[AgentEvent, None]:
        """One turn; its last event is `TurnFinished`. Close it with `aclosing`."""
        async with aclosing(self._agent.run(prompt)) as events:
            async for event in events:
                if self._log is not None and self._logged(self._log, event):
                    self._problems.append(self._log.problem or "")
                yield event
                while self._problems:
                    yield Notice(t=self._now(), level="warning", text=self._problems.pop(0))

    def cancel(self) -> None:
        """Ends the turn at once."""
        self._agent.cancel()

    async def aclose(self) -> None:
        await self._model.aclose()
        if self._log is not None:
            self._log.close()

    @staticmethod
    def _logged(log: DebugLog, event: AgentEvent) -> bool:
        """Writes to the log; whether that failed just now."""
        well = log.problem is None
        log.write(event)
        return well and log.problem is not None
