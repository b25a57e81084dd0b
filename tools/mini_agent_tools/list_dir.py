"""list_dir: the names in a folder."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import msgspec

from mini_agent.agent.tools import Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolResult
from mini_agent.core.permission import Preview

_MOST_NAMES = 1000


class ListArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(description="The folder; the workspace by default.")] | None = None


class ListDir(Tool[ListArguments]):
    """Lists names, one a line, a folder's with a slash behind it."""

    name = "list_dir"
    description = "Lists what is in a folder, one name a line; the names of folders end in a slash."
    effect = "reads"
    parameters = ListArguments

    def preview(self, arguments: ListArguments, context: ToolContext) -> Preview:
        path = context.files.workspace.resolve(arguments.path or ".")
        shown = context.files.workspace.relative(path)
        return Preview((str(path),), shown, f"list {shown}")

    async def run(self, arguments: ListArguments, context: ToolContext) -> ToolResult:
        path = context.files.workspace.resolve(arguments.path or ".")
        shown = context.files.workspace.relative(path)
        try:
            names = await asyncio.to_thread(_names, path)
        except FileNotFoundError as error:
            raise ToolError(f"There is no folder {shown}.") from error
        except NotADirectoryError as error:
            raise ToolError(f"{shown} is a file, not a folder. read_file shows it.") from error
        except OSError as error:
            raise ToolError(f"{shown}: {error.strerror or error}.") from error
        if not names:
            return ToolResult("[The folder is empty.]")
        left_out = len(names) - _MOST_NAMES
        note = [f"[{left_out:,} more names are left out.]"] if left_out > 0 else []
        return ToolResult("\n".join(names[:_MOST_NAMES] + note))


def _names(path: Path) -> list[str]:
    """The names in order, fit for a line each and for UTF-8. What a link leads to says whether it is a folder."""
    with os.scandir(path) as entries:
        return sorted(_line(entry) for entry in entries)


def _line(entry: os.DirEntry[str]) -> str:
    try:
        slash = "/" * entry.is_dir()
    except OSError:  # a link that leads in a circle, or where it may not be looked
        slash = ""
    name = os.fsencode(entry.name).decode(errors="replace")
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in name) + slash
