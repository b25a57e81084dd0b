"""What a front end needs of a session, as one protocol. Front ends know nothing else of the program."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from mini_agent.core.events import AgentEvent
from mini_agent.core.messages import Image, ToolSpec
from mini_agent.core.permission import Approve, Mode
from mini_agent.core.profile import Effort
from mini_agent.core.status import Status


class Resumed(msgspec.Struct, frozen=True):
    """What a session that goes on brings with it.

    prompt, answer: of the last turn, "" where it has none. is_waiting: whether the answer is missing or broke off.
    is_interrupted: whether that was in the middle of it. is_open: whether Enter goes on with it: the user did not stop it.
    """

    id: str
    turns: int
    prompt: str
    answer: str
    is_open: bool
    is_waiting: bool = False
    is_interrupted: bool = False


class Facts(msgspec.Struct, frozen=True):
    """What is true of a session from its start.

    notices: are said before the first prompt. reasoning: how it is shown. frame_rate: frames a second at most. home: what
    `~` stands for. history: the file of what was sent from this folder before.
    """

    version: str
    profile: str
    model: str
    mode: Mode
    folder: str
    key_env: str
    stream: bool = True
    notices: tuple[str, ...] = ()
    resumed: Resumed | None = None
    reasoning: Literal["summary", "full"] = "summary"
    frame_rate: float = 20
    home: Path | None = None
    history: Path | None = None

    @property
    def is_demo(self) -> bool:
        return self.profile == "demo"


class SessionPort(Protocol):
    """One conversation in use.

    id: what `-r` takes. is_waiting: whether an answer can be asked for without another message: a turn failed, or was
    stopped, before it had its answer.
    """

    @property
    def id(self) -> str: ...
    @property
    def is_waiting(self) -> bool: ...

    def run(self, prompt: str | None, images: Sequence[Image] = ()) -> AsyncGenerator[AgentEvent, None]:
        """One turn; its last event is `TurnFinished`. Close it with `aclosing`.

        prompt: None goes on where one stopped. images: go out with it.
        """
        ...

    def compact(self) -> AsyncGenerator[AgentEvent, None]:
        """Has the conversation summed up, as a turn of its own."""
        ...

    def shell(self, command: str) -> AsyncGenerator[AgentEvent, None]:
        """Runs a command of the user's own, as a turn of its own; the model learns of it with the next request."""
        ...

    def cancel(self) -> None:
        """Ends the turn at once. Synchronous, may be called at any time and again."""
        ...

    @property
    def status(self) -> Status: ...
    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    @property
    def answer(self) -> str:
        """The text of the last answer, "" where there is none."""
        ...

    def use(
        self, *, model: str | None = None, mode: Mode | None = None, effort: Effort | None = None
    ) -> None:
        """Sets what is given, from the next turn on."""
        ...

    async def models(self) -> Sequence[str]:
        """The models that the endpoint offers. Raises ModelError."""
        ...

    def clear(self) -> None:
        """Begins a conversation without what was said; the journal keeps it."""
        ...

    async def aclose(self) -> None: ...


ListPaths = Callable[[], Iterable[Sequence[str]]]
"""Goes through the paths of the workspace, a folder at a time; called in a thread."""

Queued = Callable[[], Sequence[str]]
"""Gives, once, the messages that the user wrote while a turn ran."""

OpenSession = Callable[[Approve, Queued], Awaitable[SessionPort]]
"""Opens the session a front end works with; returns when the heavy parts are loaded. Raises ConfigError."""
