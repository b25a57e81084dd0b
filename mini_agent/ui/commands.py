"""The slash commands: one table, to which each room's commands are added."""

import re
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from typing import NamedTuple, Protocol

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


class Command(NamedTuple):
    """One command. `run` gets what follows its name on the line."""

    summary: str
    run: Callable[[Shell, str], Awaitable[None]]


async def _help(shell: Shell, _: str) -> None:
    width = max(map(len, COMMANDS))
    shell.say("\n".join(f"/{name:{width}}  {command.summary}" for name, command in COMMANDS.items()))
    shell.say(KEYS_HELP)


async def _retry(shell: Shell, _: str) -> None:
    await shell.retry()


async def _quit(shell: Shell, _: str) -> None:
    shell.leave()


COMMANDS: Mapping[str, Command] = {
    "help": Command("what can be typed here", _help),
    "retry": Command("go on with a turn that failed (so does Enter on an empty line)", _retry),
    "quit": Command("leave (also Ctrl+D)", _quit),
}

KEYS_HELP = """\
Enter sends; Alt+Enter or Ctrl+J begins a new line; Up and Down go through what was sent.
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
