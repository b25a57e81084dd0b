"""A session without an agent: plays scripted events, for the terminal's tests and for looking at the screen by hand.

`python tests/ui/fake_session.py` runs the REPL on it; the prompt's words choose what is played (see SCENES).
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

import msgspec

from mini_agent.core.errors import ErrorInfo, ModelError
from mini_agent.core.events import (
    AgentEvent,
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    AttemptProgress,
    ChannelToken,
    Completed,
    Failed,
    FirstToken,
    Notice,
    Retrying,
    StreamStarted,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from mini_agent.core.messages import Image, Response, Text, ToolSpec, Usage
from mini_agent.core.permission import ApprovalRequest, Preview
from mini_agent.core.status import Status
from mini_agent.ui.ports import Approve, Facts, Queued

FACTS = Facts(
    version="0.1.0", profile="demo", model="demo", mode="ask", folder="/tmp", key_env="DEEPSEEK_API_KEY"
)
ERROR = ErrorInfo(kind="rate_limit", message="429: too many requests", status=429, hint="wait a little")
USAGE = Usage(input_tokens=812, output_tokens=230, cached_tokens=512)
DIFF = "--- a/hello.py\n+++ b/hello.py\n@@ -1,2 +1,2 @@\n import sys\n-print('hi')\n+print('hello')\n"

Step = AgentEvent | float | ApprovalRequest
"""What a scene is made of: events, pauses in seconds, questions."""


def at(attempt: int = 1, request: str = "r1") -> dict[str, object]:
    return {"t": time.time(), "request_id": request, "attempt": attempt}


def started(attempt: int = 1) -> StreamStarted:
    return StreamStarted(**at(attempt), model="demo", api="demo")


def text(piece: str, channel: str = "text", attempt: int = 1) -> ChannelToken:
    return ChannelToken(**at(attempt), channel=channel, text=piece)


def retrying(retry: int, wait_s: float) -> Retrying:
    return Retrying(**at(retry), retry=retry, max_retries=4, wait_s=wait_s, decision="backoff", error=ERROR)


def ended(outcome: str = "completed", attempt: int = 1, total_s: float = 2.0) -> AttemptEnded:
    return AttemptEnded(**at(attempt), outcome=outcome, first_token_s=0.3, total_s=total_s, usage=USAGE)


def completed(said: str = "x", attempt: int = 1) -> Completed:
    return Completed(**at(attempt), response=Response((Text(said),), usage=USAGE))


def words(count: int, delay_s: float, attempt: int = 1) -> Iterator[Step]:
    for number in range(count):
        yield delay_s
        if not number:
            yield FirstToken(**at(attempt), ttft_s=0.1)
        end = "\n\n" if number % 40 == 39 else "\n" if number % 17 == 16 else " "
        yield text(f"word{number}{end}", attempt=attempt)


def answer(count: int = 60, delay_s: float = 0.02, attempt: int = 1) -> Iterator[Step]:
    yield started(attempt)
    yield 0.2
    yield AttemptProgress(**at(attempt), phase="headers", bytes=0, silent_s=0)
    yield from words(count, delay_s, attempt)
    yield completed(attempt=attempt)
    yield ended(attempt=attempt)


def think(count: int = 100) -> Iterator[Step]:
    yield started()
    for number in range(count):
        yield 0.02
        yield text(f"thought {number} " + "\n" * (number % 7 == 6), "reasoning")
    yield from words(30, 0.02)
    yield completed()
    yield ended()


def cut(rows: int = 60) -> Iterator[Step]:
    yield started()
    yield from words(rows, 0.01)
    yield ended("failed")
    yield retrying(1, 2.5)
    yield 2.5
    yield from answer(30, attempt=2)


def call(name: str, arguments: dict[str, object], call_id: str = "c1") -> Iterator[Step]:
    yield started()
    yield text("I will do it.\n")
    for piece in ('{"path": ', '"hello.py", "old": "', *["much text "] * 40, '"}'):
        yield 0.02
        yield ToolCallDelta(**at(), index=0, id=call_id, name=name, arguments=piece)
    yield completed()
    yield ended()


def edit() -> Iterator[Step]:
    yield from call("edit_file", {})
    yield ApprovalRequest(
        "c1", "edit_file", "writes", Preview(summary="edit hello.py", diff=DIFF), "it changes a file"
    )
    yield ToolStarted(t=time.time(), call_id="c1", name="edit_file", arguments={"path": "hello.py"})
    yield ToolFinished(
        t=time.time(),
        call_id="c1",
        name="edit_file",
        is_error=False,
        content="Edited hello.py: 1 replacement",
        elapsed_s=0.01,
        detail=DIFF,
    )
    yield from answer(20)


def run() -> Iterator[Step]:
    yield from call("run_bash", {})
    yield ToolStarted(
        t=time.time(), call_id="c1", name="run_bash", arguments={"command": "make\n\x1b[2Jtest"}
    )
    for number in range(30):
        yield 0.1
        yield ToolOutput(t=time.time(), call_id="c1", text=f"line {number} of output \x1b[31mred\x1b[0m\n")
    yield ToolFinished(
        t=time.time(), call_id="c1", name="run_bash", is_error=True, content="exit code 2\na\nb", elapsed_s=3
    )
    yield from answer(20)


def fail() -> Iterator[Step]:
    for number in range(1, 3):
        yield started(number)
        yield 0.1
        yield ended("failed", number)
        yield retrying(number, 1)
        yield 1.0
    yield started(3)
    yield ended("failed", 3)
    yield Failed(t=time.time(), error=ERROR)
    yield TurnFinished(t=time.time(), reason="failed", text="", usage=USAGE)


def silent() -> Iterator[Step]:
    yield started()
    yield from words(5, 0.02)
    for number in range(1, 60):
        yield 1.0
        yield AttemptProgress(**at(), phase="silent", bytes=100, silent_s=float(number))
    yield completed()


def wait() -> Iterator[Step]:
    yield started()
    yield retrying(1, 30)
    yield 30.0
    yield from answer()


def notice() -> Iterator[Step]:
    yield Notice(t=time.time(), level="warning", text="something is odd")
    yield from answer(20)


SCENES: dict[str, Callable[[], Iterator[Step]]] = {
    "cutlong": lambda: cut(1000),
    "long": lambda: answer(2000, 0.004),
    "think": think,
    "cut": cut,
    "edit": edit,
    "run": run,
    "fail": fail,
    "silent": silent,
    "wait": wait,
    "notice": notice,
}


class FakeSession:
    """A SessionPort. `prompts` are those it got; `scenes` choose what is played by a word of the prompt."""

    def __init__(
        self,
        approve: Approve,
        scenes: dict[str, Callable[[], Iterator[Step]]] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.prompts: list[str | None] = []
        self.closed = False
        self.decisions: list[bool] = []
        self._approve = approve
        self._scenes = SCENES if scenes is None else scenes
        self._sleep = sleep
        self._cancelled = asyncio.Event()
        self.is_waiting = False
        self.id = ""
        self.status = Status(model="demo", mode="ask", effort=None)
        self.tools = [ToolSpec("read_file", "Reads a file. More of it.", {})]
        self.answer = ""
        self.offered: list[str] | ModelError = ["demo", "other"]
        self.cleared = 0

    async def run(self, prompt: str | None, images: Sequence[Image] = ()) -> AsyncGenerator[AgentEvent, None]:
        self.prompts.append(prompt)
        self.images = list(images)
        prompt = prompt or ""
        self._cancelled.clear()
        yield TurnStarted(t=time.time(), prompt=prompt)
        scene = next((scene for word, scene in self._scenes.items() if word in prompt), answer)
        for step in scene():
            if isinstance(step, float | int):
                await self._unless_cancelled(self._sleep(step))
            elif isinstance(step, ApprovalRequest):
                yield ApprovalAsked(t=time.time(), call_id=step.call_id, name=step.name, summary="")
                decision = await self._unless_cancelled(self._approve(step))
                if decision is not None:
                    self.decisions.append(decision.allowed)
                    given = "allow" if decision.allowed else "deny"
                    yield ApprovalGiven(t=time.time(), call_id=step.call_id, decision=given)
            else:
                self.is_waiting = isinstance(step, TurnFinished) and step.reason == "failed"
                yield step
            if self._cancelled.is_set():
                yield TurnFinished(t=time.time(), reason="cancelled", text="", usage=USAGE)
                return
            if isinstance(step, TurnFinished):
                return
        yield TurnFinished(t=time.time(), reason="done", text="", usage=USAGE)

    def use(self, **given: object) -> None:
        changes = {name: value for name, value in given.items() if value is not None}
        self.status = msgspec.structs.replace(self.status, **changes)

    async def models(self) -> list[str]:
        if isinstance(self.offered, ModelError):
            raise self.offered
        return self.offered

    def clear(self) -> None:
        self.cleared += 1

    def shell(self, command: str) -> AsyncGenerator[AgentEvent, None]:
        return self.run(f"shell {command}")

    def compact(self) -> AsyncGenerator[AgentEvent, None]:
        return self.run("compact")

    async def _unless_cancelled(self, work: Awaitable[object]) -> object:
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self._cancelled.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            stop.cancel()
            await asyncio.wait({task, stop})

    def cancel(self) -> None:
        self._cancelled.set()

    async def aclose(self) -> None:
        self.closed = True


async def _open(approve: Approve, queued: Queued) -> FakeSession:
    return FakeSession(approve)


if __name__ == "__main__":
    sys.path.pop(0)
    from mini_agent.ui.answer import MarkdownText
    from mini_agent.ui.repl import repl

    sys.exit(asyncio.run(repl(FACTS, _open, MarkdownText, list, first_prompt=" ".join(sys.argv[1:]) or None)))
