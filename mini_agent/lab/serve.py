"""The command `mini-agent lab serve`: a lab server for any agent, until Ctrl+C."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from mini_agent.core.errors import ConfigError
from mini_agent.lab.server import LabServer

KEPT = 100
"""Requests that are remembered: a server may run for days, and a request of an agent may be megabytes."""


async def serve(
    port: int,
    faults: Sequence[str],
    say: Callable[[str], None],
    *,
    files: Path,
    strict: bool = False,
    deepseek: bool = False,
) -> None:
    """Serves until it is cancelled. The arguments are those of `LabServer`; say: is given each line of the log.

    Raises ConfigError where a fault or the port can't be used.
    """

    def log(line: str) -> None:
        say(printable(line))

    lab = LabServer(
        port=port, faults=faults, files=files, strict=strict, deepseek=deepseek, keep=KEPT, log=log
    )
    try:
        async with lab:
            log(f"lab server at {lab.base_url} (chat completions, Responses, Messages); Ctrl+C ends it")
            await asyncio.Event().wait()
    except (OSError, OverflowError) as problem:
        raise ConfigError(f"port {port} can't be used: {problem}; --port 0 takes a free one") from None


def printable(line: str) -> str:
    """`line` in ASCII, whatever a client has put into it: nothing in it can drive a terminal."""
    return "".join(
        character if " " <= character <= "~" else character.encode("unicode_escape").decode("ascii")
        for character in line
    )
