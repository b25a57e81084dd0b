"""What a front end needs of a session, as one protocol. Front ends know nothing else of the program."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol

import msgspec

from mini_agent.core.events import AgentEvent
from mini_agent.core.permission import Approve, Mode


class Facts(msgspec.Struct, frozen=True):
    """What is true of a session from its start. `notices` are said before the first prompt."""

    version: str
    profile: str
    model: str
    mode: Mode
    folder: str
    key_env: str
    stream: bool = True
    notices: tuple[str, ...] = ()

    @property
    def is_demo(self) -> bool:
        return self.profile == "demo"


class SessionPort(Protocol):
    """One conversation in use."""

    def run(self, prompt: str) -> AsyncGenerator[AgentEvent, None]:
        """One turn; its last event is `TurnFinished`. Close it with `aclosing`."""
        ...

    def cancel(self) -> None:
        """Ends the turn at once. Synchronous, may be called at any time and again."""
        ...

    async def aclose(self) -> None: ...


OpenSession = Callable[[Approve], Awaitable[SessionPort]]
"""Opens the session a front end works with; returns when the heavy parts are loaded. Raises ConfigError."""
