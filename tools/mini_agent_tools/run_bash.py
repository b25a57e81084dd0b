"""run_bash: one shell command, its output live for the screen and bounded for the model (product T4)."""

import asyncio
import signal
from contextlib import closing
from typing import Annotated

import msgspec

from mini_agent.agent.tools import Tool, ToolContext
from mini_agent.core.messages import ToolResult
from mini_agent.core.permission import Preview
from mini_agent_tools import process
from mini_agent_tools.output import Cleaner, Live, Printed

ALLOWED_S = 120.0


class BashArguments(msgspec.Struct, frozen=True):
    command: Annotated[str, msgspec.Meta(description="The command, as typed into a shell.")]
    timeout_s: (
        Annotated[
            float,
            msgspec.Meta(gt=0, le=3600, description=f"Seconds it may take; {ALLOWED_S:.0f} by default."),
        ]
        | None
    ) = None


class RunBash(Tool[BashArguments]):
    """Runs a command in the workspace folder: each one from there anew, with no input and no terminal.

    grace_s: seconds between asking a command that takes too long to end and ending it.
    """

    name = "run_bash"
    description = (
        "Runs a shell command (bash, or sh where there is no bash) in the workspace and returns its output and exit code. "
        "It gets no input. A change of directory lasts for the one command. "
        "Send the output of a background process to a file."
    )
    effect = "runs"
    parameters = BashArguments

    def __init__(self, grace_s: float = 2.0) -> None:
        self._grace_s = grace_s

    def preview(self, arguments: BashArguments, context: ToolContext) -> Preview:
        one_line = arguments.command.strip().replace(
            "\n", "\\n"
        )  # whole: nothing of it may hide from the question
        return Preview(subject=arguments.command, summary=f"run {one_line}")

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolResult:
        allowed_s = arguments.timeout_s or ALLOWED_S
        with closing(Printed(context.spill)) as printed:
            child = await process.start(arguments.command, context.files.workspace.root, context.environment)
            try:
                in_time = await self._follow(child, printed, Live(context.output), allowed_s)
            except BaseException:
                child.kill()
                raise
            finally:
                await child.close()
            return _result(printed.text(), child, None if in_time else allowed_s)

    async def _follow(self, child: process.Child, printed: Printed, live: Live, allowed_s: float) -> bool:
        """Reads until nothing more can come. Returns whether that was in time; if not, all of it has been ended."""
        loop = asyncio.get_running_loop()
        cleaner = Cleaner()
        act_at = loop.time() + allowed_s
        actions = [child.terminate, child.kill]
        while not child.over:
            data = await child.read(min(act_at, live.due))
            text = cleaner.feed(data)
            printed.feed(text)
            await live.feed(text, loop.time())
            if loop.time() < act_at or child.over:
                continue
            if not actions:
                break  # not even a kill ends it: it hangs in the system
            actions.pop(0)()
            act_at = loop.time() + self._grace_s
        in_time = len(actions) == 2
        if not in_time:
            child.kill()  # those of the group that outlived the shell
        rest = cleaner.feed(b"", last=True)
        printed.feed(rest)
        await live.feed(rest, loop.time(), last=True)
        return in_time


def _result(output: str, child: process.Child, overran_s: float | None) -> ToolResult:
    """overran_s: the time it was given, where it took longer."""
    code = child.exit_code
    if overran_s is not None:
        notes = [f"stopped after {overran_s:g} s, with all it had started: it took too long"]
    elif code is not None and code < 0:
        notes = [f"ended by signal {_signal_name(-code)}"]
    else:
        notes = [f"exit code {code}"]
    if child.left_running and overran_s is None:
        notes.append(
            "a background process still runs; what it prints from now on is lost and may end it: "
            "send its output to a file"
        )
    if not output:
        notes.insert(0, "no output")
    separator = "" if not output or output.endswith("\n") else "\n"
    return ToolResult(f"{output}{separator}[{'; '.join(notes)}]", is_error=code != 0 or overran_s is not None)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
