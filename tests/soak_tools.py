"""The tools of a soak: they do nothing but say that they were run, by the token that each call of the model carries."""

import asyncio
from collections.abc import Callable
from typing import ClassVar, Literal

import msgspec

from mini_agent.agent.tools import Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolResult
from mini_agent.core.permission import Effect

Ran = Callable[[str], None]


class Arguments(msgspec.Struct):
    """token: what the call is known by. size: characters to return. slow_s: how long it takes. how: what it is like."""

    token: str
    size: int = 20
    slow_s: float = 0
    how: Literal["fine", "refuses", "breaks", "stubborn"] = "fine"


class Look(Tool[Arguments]):
    name: ClassVar[str] = "look"
    description: ClassVar[str] = "Looks at something."
    effect: ClassVar[Effect] = "reads"
    parameters = Arguments

    def __init__(self, ran: Ran) -> None:
        self._ran = ran

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        self._ran(arguments.token)
        await context.output("looking\n")
        try:
            await asyncio.sleep(arguments.slow_s)
        except asyncio.CancelledError:
            if arguments.how != "stubborn":
                raise
        match arguments.how:
            case "refuses":
                raise ToolError("There is nothing to look at.")
            case "breaks":
                raise RuntimeError("the tool is broken")
            case _:
                line = f"{arguments.token} is here\n"
                return ToolResult(line * max(1, arguments.size // len(line)))


class Command(msgspec.Struct):
    command: str


class Shell(Tool[Command]):
    """What the user runs; the model does not know how."""

    name: ClassVar[str] = "run_bash"
    description: ClassVar[str] = "Runs a command."
    effect: ClassVar[Effect] = "runs"
    parameters = Command

    async def run(self, arguments: Command, context: ToolContext) -> ToolResult:
        await context.output("running\n")
        await asyncio.sleep(1)
        return ToolResult(f"{arguments.command} ran")


class Note(Look):
    name: ClassVar[str] = "note"
    description: ClassVar[str] = "Notes something down."
    effect: ClassVar[Effect] = "writes"
