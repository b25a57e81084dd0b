"""write_file: a whole file, new or in place of one that the model has seen."""

import codecs
import os
from typing import Annotated

import msgspec

from mini_agent.agent.tools import Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolResult
from mini_agent.core.permission import Preview
from mini_agent.workspace.files import Files
from mini_agent_tools.changes import Change, carry_out, diff_of, encode, has_crlf, propose


class WriteArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(description="The file, from the workspace or absolute.")]
    content: Annotated[str, msgspec.Meta(description="The whole content.")]


class WriteFile(Tool[WriteArguments]):
    """Puts `content` in place of the whole file, in the form the file has: its byte order mark and its CRLF stay."""

    name = "write_file"
    description = (
        "Writes a whole file, with the folders that lead to it. An existing file has to be read first; "
        "to change a part of it, use edit_file."
    )
    effect = "writes"
    parameters = WriteArguments

    def preview(self, arguments: WriteArguments, context: ToolContext) -> Preview:
        path = context.files.workspace.resolve(arguments.path)
        return propose("write", path, context.files, lambda: _plan(arguments, context.files))

    async def run(self, arguments: WriteArguments, context: ToolContext) -> ToolResult:
        change = _plan(arguments, context.files)
        carry_out(change, context.files)
        return ToolResult(change.summary, detail=diff_of(change, context.files))


def _plan(arguments: WriteArguments, files: Files) -> Change:
    """The change. Raises ToolError where it would destroy what the model has not seen."""
    path = files.workspace.resolve(arguments.path)
    shown = files.workspace.relative(path)
    content = encode(arguments.content, "content")
    if not os.path.lexists(path):
        return Change(path, None, content, f"Created {shown}: {len(content):,} bytes.")
    before = files.read(path)
    _require_text(before, shown)
    if before and not files.is_known(path):
        raise ToolError(
            f"{shown} exists already. Read it first; then write it, or change a part with edit_file."
        )
    files.require_fresh(path, before)
    after = _in_form_of(before, content)
    kept = " in CRLF, as it was" if after.count(b"\r\n") > content.count(b"\r\n") else ""
    return Change(path, before, after, f"Wrote {shown}: {len(after):,} bytes{kept}.")


def _require_text(before: bytes, shown: str) -> None:
    """A file in another encoding would lose it, and a model was shown no more than U+FFFD for its characters."""
    try:
        before.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{shown} is not UTF-8 text, so writing it whole would destroy what it holds. "
            "Change a part of it with edit_file, or delete it first."
        ) from error


def _in_form_of(before: bytes, content: bytes) -> bytes:
    """`content` as the file has its text: read_file shows neither the byte order mark nor the CR of a CRLF."""
    if has_crlf(before) and b"\r" not in content:
        content = content.replace(b"\n", b"\r\n")
    if before.startswith(codecs.BOM_UTF8) and not content.startswith(codecs.BOM_UTF8):
        content = codecs.BOM_UTF8 + content
    return content
