"""The slash commands: one table, to which each room's commands are added."""

import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, Protocol, TypeVar, get_args

from mini_agent.core.permission import Mode
from mini_agent.core.profile import Effort
from mini_agent.ui.ports import SessionPort
from mini_agent.ui.receipt import cost_lines

T = TypeVar("T")

# A path is no command: "/usr/bin/env fails" and "/etc/hosts?" go to the model. So does a line that begins with a space.
_COMMAND = re.compile(r"/([A-Za-z][\w-]*|$)(?:\s+|$)", re.ASCII)


class Shell(Protocol):
    """What a command can do with the front end."""

    def say(self, text: str) -> None:
        """Prints lines."""
        ...

    def leave(self) -> None:
        """Ends the program after the command."""
        ...

    async def retry(self) -> None:
        """Goes on with the turn that stopped before its answer."""
        ...

    async def compact(self) -> None:
        """Has the conversation summed up."""
        ...

    async def session(self) -> SessionPort | None:
        """The session, once it is there; None where the user did not want to wait. Raises ConfigError."""
        ...

    async def waited(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` gives, shown as something that is going on; None where the user stopped it."""
        ...

    def copy(self, text: str) -> None:
        """Puts text on the clipboard, if the terminal does that."""
        ...

    @property
    def reasoning(self) -> str:
        """What the model thought in the last turn."""
        ...


class Command(NamedTuple):
    """One command. `run` gets what follows its name on the line. takes: what may stand there, for help and completion."""

    summary: str
    run: Callable[[Shell, str], Awaitable[None]]
    takes: str = ""


async def _help(shell: Shell, _: str) -> None:
    shown = {f"/{name} {command.takes}".rstrip(): command.summary for name, command in COMMANDS.items()}
    width = max(map(len, shown))
    shell.say("\n".join(f"{name:{width}}  {summary}" for name, summary in shown.items()))
    shell.say(KEYS_HELP)


async def _model(shell: Shell, name: str) -> None:
    if (session := await shell.session()) is None:
        return
    if name:
        session.use(model=name)
        shell.say(f"model: {name}, from the next message on")
        return
    current = session.status.model
    offered = await shell.waited(session.models()) or ()
    for model in offered:
        shell.say(f"{'*' if model == current else ' '} {model}")
    if current not in offered:
        shell.say(f"* {current}")
    shell.say("/model NAME takes another one")


async def _mode(shell: Shell, mode: str) -> None:
    if (session := await shell.session()) is None:
        return
    for known in get_args(Mode):
        if mode == known:
            session.use(mode=known)
    if mode not in ("", session.status.mode):
        shell.say(f"there is no mode {mode}: {' or '.join(get_args(Mode))}")
    else:
        shell.say(f"mode: {session.status.mode} ({MODES[session.status.mode]})")


async def _effort(shell: Shell, effort: str) -> None:
    if (session := await shell.session()) is None:
        return
    for known in get_args(Effort):
        if effort == known:
            session.use(effort=known)
    if effort not in ("", session.status.effort):
        shell.say(f"there is no effort {effort}: {', '.join(get_args(Effort))}")
    else:
        shell.say(f"effort: {session.status.effort or 'as the model has it'}")


async def _clear(shell: Shell, _: str) -> None:
    if (session := await shell.session()) is not None:
        session.clear()
        shell.say("the conversation begins anew; the session's journal keeps what was said")


async def _compact(shell: Shell, _: str) -> None:
    await shell.compact()


async def _cost(shell: Shell, _: str) -> None:
    if (session := await shell.session()) is not None:
        for line in cost_lines(session.status):
            shell.say(line)


async def _tools(shell: Shell, _: str) -> None:
    if (session := await shell.session()) is not None:
        width = max((len(tool.name) for tool in session.tools), default=0)
        for tool in session.tools:
            shell.say(f"{tool.name:{width}}  {tool.description.split('. ')[0].rstrip('.')}")


async def _retry(shell: Shell, _: str) -> None:
    await shell.retry()


async def _copy(shell: Shell, _: str) -> None:
    if (session := await shell.session()) is None:
        return
    if text := session.answer:
        shell.copy(text)
        shell.say(
            f"the last answer went to the clipboard ({len(text):,} characters), if the terminal allows it"
        )
    else:
        shell.say("there is no answer to copy")


async def _reasoning(shell: Shell, _: str) -> None:
    shell.say(shell.reasoning.strip() or "the model showed no reasoning in the last turn")


async def _quit(shell: Shell, _: str) -> None:
    shell.leave()


MODES: Mapping[Mode, str] = {
    "ask": "changes and commands are asked about",
    "auto": "changes inside the folder are made without a question",
}

COMMANDS: Mapping[str, Command] = {
    "help": Command("what can be typed here", _help),
    "model": Command("the models there are, or another one", _model, "[NAME]"),
    "mode": Command("what is done without a question", _mode, "[ask|auto]"),
    "effort": Command("how much the model thinks first: off, low, medium or high", _effort, "[LEVEL]"),
    "clear": Command("begin the conversation anew", _clear),
    "compact": Command("sum the conversation up, to make room", _compact),
    "cost": Command("what the session took so far", _cost),
    "tools": Command("what the model can do", _tools),
    "retry": Command("go on with a turn that failed (or Enter on an empty line)", _retry),
    "copy": Command("the last answer to the clipboard", _copy),
    "reasoning": Command("what the model thought in the last turn, whole", _reasoning),
    "quit": Command("leave (also Ctrl+D)", _quit),
}

KEYS_HELP = """\
!COMMAND runs a command of your own; the model is told of it with the next message.
Enter sends; Alt+Enter or Ctrl+J begins a new line; Up and Down go through what was sent.
While it works, Enter queues a message for the next step, and Up takes it back.
Ctrl+C or Esc stops the answer, a wait or a tool. Ctrl+C clears the line, twice on an empty one leaves."""


def find(line: str) -> tuple[str, str] | None:
    """The name and the rest of a line that is a command, known or not; None for a message to the model."""
    found = _COMMAND.match(line)
    return (found[1], line[found.end() :].strip()) if found else None


def unknown(name: str) -> str:
    """What to say of a command that there is not: the nearest one, and how to send the line all the same."""
    near = get_close_matches(name.lower(), COMMANDS, n=1, cutoff=0.5)
    there = f"did you mean /{near[0]}?" if near else f"/{', /'.join(COMMANDS)} there are."
    return f"there is no command /{name}: {there} To send the line as a message, begin it with a space."
