"""A tool that takes its time: the program that runs it can be killed in the middle of it."""

import asyncio
from pathlib import Path
from typing import ClassVar

import msgspec

from mini_agent.agent.tools import Tool, ToolContext
from mini_agent.core.messages import ToolResult
from mini_agent.core.permission import Effect, Preview


class Arguments(msgspec.Struct):
    """token: what the call is known by."""

    token: str


class SlowNote(Tool[Arguments]):
    """Writes a line when it begins and one when it ends, so that a second run would show."""

    name: ClassVar[str] = "slow_note"
    description: ClassVar[str] = "Notes something down, slowly."
    effect: ClassVar[Effect] = "writes"
    parameters = Arguments

    def preview(self, arguments: Arguments, context: ToolContext) -> Preview:
        return Preview(targets=(str(_notes(context)),))

    async def run(self, arguments: Arguments, context: ToolContext) -> ToolResult:
        _note(context, f"began {arguments.token}")
        await asyncio.sleep(0.1)
        _note(context, f"ended {arguments.token}")
        return ToolResult(f"{arguments.token} is noted.")


def _notes(context: ToolContext) -> Path:
    return context.files.workspace.root / "notes.txt"


def _note(context: ToolContext, line: str) -> None:
    with _notes(context).open("a", encoding="utf-8") as notes:
        notes.write(f"{line}\n")
