"""The calls of one response: judged, asked about, run, each with its result in the history at once.

Those that only read and need no question run side by side; whatever changes or runs something runs alone and in order
(product A3). Whatever goes wrong in a tool becomes an error result for the model; only a cancel passes through.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from mini_agent.agent.handover import HandOver
from mini_agent.agent.permissions import is_secret, judge
from mini_agent.agent.tools import Registry, Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.events import ApprovalAsked, ApprovalGiven, ToolFinished, ToolOutput, ToolStarted
from mini_agent.core.history import Conversation
from mini_agent.core.messages import ToolCall, ToolResult
from mini_agent.core.permission import ApprovalRequest, Approve, Decision, Mode, Preview
from mini_agent.core.repetition import FINE, CallGuard, Repetition
from mini_agent.core.surrogates import join_surrogates
from mini_agent.workspace.spill import cut

CUT = (
    "Not run: the output was cut at max_tokens, so the call may be incomplete. None of this response's calls was run. "
    "Split large content into smaller edits, one call at a time."
)
DENIED = "Denied: {why}. Do not try the same in another way; go on without it, or ask."
STOPPED = "Not run: {reason}."
REPEATED = STOPPED.format(reason="the same was called over and over, so the turn was ended here")
WARNING = (
    "{what} been made {times} times running. Expect the same result however often you ask: do something else, or answer "
    "with what you have."
)

SIDE_BY_SIDE = 8
"""Calls that run at once at most: they share one disk, and each may hold a file or a connection open."""


@dataclass(slots=True, frozen=True)
class _Judged:
    """What was found out of a call without running it.

    question: why the user has to be asked, "" where not. problem: why it can't be run at all; there may be no tool then.
    """

    tool: Tool[Any] | None = None
    arguments: Any = None
    preview: Preview = field(default_factory=Preview)
    question: str = ""
    problem: BaseException | None = None


@dataclass(slots=True)
class _Pending:
    """A call on its way. judged: None where that has to wait until its turn comes. began: in the clock's seconds."""

    call: ToolCall
    repetition: Repetition
    judged: _Judged | None
    began: float = 0.0


class CallRunner:
    """Runs calls and puts what happens into the hand-over.

    mode: what is done without a question; it may change between turns. now: unix seconds. clock: seconds from any origin,
    for what a call takes. denied: whether a call was denied in this turn and none has succeeded since. repeating: whether
    the turn is to end because the model repeats its calls, was warned, and nobody wants it to go on (product A5).
    """

    def __init__(
        self,
        tools: Registry,
        conversation: Conversation,
        approve: Approve,
        *,
        context: ToolContext,
        mode: Mode,
        handover: HandOver,
        now: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tools = tools
        self._conversation = conversation
        self._approve = approve
        self._context = context
        self.mode: Mode = mode
        self._handover = handover
        self._now = now
        self._clock = clock
        self._guard = CallGuard()
        self.denied = False
        self.repeating = False

    def begin_turn(self) -> None:
        self.denied = self.repeating = False
        self._guard.reset()

    async def run(self, calls: Sequence[ToolCall], *, stopped: Callable[[], bool]) -> None:
        """Runs them until `stopped` says that the turn is over: a tool may have swallowed its cancel.

        Where `repeating` is set afterwards, the calls that were left got an error result each.
        """
        taken = 0
        for batch in self._batches(calls):
            if stopped():
                return
            if len(batch) == 1:
                await self._take(batch[0])
            else:
                await self._take_side_by_side(batch)
            taken += len(batch)
            if self.repeating:
                await self.refuse(calls[taken:], REPEATED)
                return

    async def refuse(self, calls: Sequence[ToolCall], why: str) -> None:
        """Runs none of them; each gets `why` as its error result."""
        for call in calls:
            await self._finish(call, ToolResult(why, is_error=True), 0.0)

    def _batches(self, calls: Sequence[ToolCall]) -> Iterator[list[_Pending]]:
        """The calls in order: each alone, but for neighbours that may run side by side.

        Only what comes next is looked at: what a call may do can depend on what those before it did. Results are told
        apart by their ids, so calls that share one are not run at once.
        """
        batch: list[_Pending] = []
        for call in calls:
            repetition = self._guard.feed(call.name, _canonical(call))
            judged = None if repetition.verdict == "ask" else self._judge_read(call)
            if batch and (judged is None or any(call.id == other.call.id for other in batch)):
                yield batch
                batch = []
            batch.append(_Pending(call, repetition, judged))
            if judged is None:
                yield batch
                batch = []
        if batch:
            yield batch

    async def _take_side_by_side(self, batch: Sequence[_Pending]) -> None:
        """A cancel ends all of them, and this returns when they have ended."""
        places = asyncio.Semaphore(SIDE_BY_SIDE)

        async def take(pending: _Pending) -> None:
            async with places:
                await self._take(pending)

        async with asyncio.TaskGroup() as group:
            for pending in batch:
                group.create_task(take(pending), name=f"call {pending.call.id}")

    async def _take(self, pending: _Pending) -> None:
        pending.began = self._clock()
        result = await self._guarded(pending)
        warning = _warning(pending.repetition)
        await self._finish(pending.call, result, self._clock() - pending.began, warning)

    async def _finish(self, call: ToolCall, result: ToolResult, elapsed_s: float, warning: str = "") -> None:
        """The result enters the history before anything is awaited, so that no cancel can lose it.

        Here, and nowhere else, one that is too large is cut (product A7). warning: a last paragraph for the model.
        """
        content = cut(join_surrogates(result.content), self._context.spill)
        content = "\n\n".join(part for part in (content, warning) if part)
        self._conversation.add_result(ToolResult(content, result.is_error, call.id))
        if not result.is_error:
            self.denied = False
        await self._tell_finished(call, msgspec.structs.replace(result, content=content), elapsed_s)

    async def _tell_finished(self, call: ToolCall, result: ToolResult, elapsed_s: float) -> None:
        await self._handover.put(
            ToolFinished(
                t=self._now(),
                call_id=call.id,
                name=call.name,
                is_error=result.is_error,
                content=result.content,
                elapsed_s=elapsed_s,
                detail=None if result.detail is None else join_surrogates(result.detail),
            )
        )

    async def by_user(self, call: ToolCall) -> ToolResult:
        """Runs a call that the user makes: nobody is asked, and it is none of the model's. Its result, cut as any other."""
        pending = _Pending(call, FINE, replace(self._judge(call), question=""))
        pending.began = self._clock()
        result = await self._guarded(pending)
        result = msgspec.structs.replace(
            result, content=cut(join_surrogates(result.content), self._context.spill)
        )
        await self._tell_finished(call, result, self._clock() - pending.began)
        return result

    async def _guarded(self, pending: _Pending) -> ToolResult:
        """The call's result; a refusal or a failure of any kind is one."""
        name = pending.call.name
        try:
            return await self._permitted(pending)
        except ToolError as error:
            return ToolResult(str(error), is_error=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return ToolResult(f"{name} failed: something it waited for was cancelled", is_error=True)
        except (Exception, SystemExit) as error:  # noqa: BLE001  somebody else's code: the loop goes on whatever it raises
            return ToolResult(f"{name} failed: {_described(error)}", is_error=True)

    async def _permitted(self, pending: _Pending) -> ToolResult:
        """Runs the call if it may be run. Raises whatever the tool raises."""
        call, again = pending.call, _again(pending.repetition)
        judged = pending.judged or self._judge(call)
        if again or judged.question:
            reason = "; ".join(why for why in (again, judged.question) if why)
            effect = "reads" if judged.tool is None else judged.tool.effect
            decision = await self._ask(ApprovalRequest(call.id, call.name, effect, judged.preview, reason))
            if again and not decision.allowed:
                self.repeating = True
                return ToolResult(REPEATED, is_error=True)
            if again:
                self._guard.reset()
            if not decision.allowed:
                self.denied = True
                return ToolResult(DENIED.format(why=decision.why or "the user said no"), is_error=True)
        if judged.problem is not None:
            raise judged.problem
        return await self._execute(pending, judged)

    def _judge_read(self, call: ToolCall) -> _Judged | None:
        """What is known of a call that only reads and needs no question; None of any other."""
        # A preview of a change may depend on the reads before it, and looks at files: not before its turn.
        if self._tools.effect(call.name) != "reads":
            return None
        judged = self._judge(call)
        return judged if judged.problem is None and not judged.question else None

    def _judge(self, call: ToolCall) -> _Judged:
        """Finds out what the call would do and whether it may. Raises nothing."""
        try:
            tool, arguments = self._tools.find(call)
            preview = tool.preview(arguments, self._context)
            reads = tool.effect == "reads"
            workspace = self._context.files.workspace
            is_within = workspace.may_read if reads else workspace.is_inside
            _, question = judge(
                tool.effect,
                self.mode,
                # A change that does not say what it touches may touch anything.
                inside=(reads or bool(preview.targets)) and all(map(is_within, preview.targets)),
                secret=any(map(is_secret, preview.targets)),
            )
        except (Exception, SystemExit) as error:  # noqa: BLE001  somebody else's code, as above
            return _Judged(problem=error)
        return _Judged(tool, arguments, preview, question)

    async def _ask(self, request: ApprovalRequest) -> Decision:
        summary = request.preview.summary or request.name
        await self._handover.put(
            ApprovalAsked(t=self._now(), call_id=request.call_id, name=request.name, summary=summary)
        )
        await self._handover.settled()
        decision = await self._approve(request)
        await self._handover.put(
            ApprovalGiven(
                t=self._now(),
                call_id=request.call_id,
                decision="allow" if decision.allowed else "deny",
                rule=decision.why,
            )
        )
        return decision

    async def _execute(self, pending: _Pending, judged: _Judged) -> ToolResult:
        call, tool = pending.call, judged.tool
        assert tool is not None  # there is one where there is no problem

        async def output(text: str) -> None:
            await self._handover.put(ToolOutput(t=self._now(), call_id=call.id, text=join_surrogates(text)))

        await self._handover.put(
            ToolStarted(t=self._now(), call_id=call.id, name=call.name, arguments=call.arguments)
        )
        await self._handover.settled()
        pending.began = self._clock()  # what the user took to answer is not the tool's time
        result: object = await tool.run(judged.arguments, replace(self._context, output=output))
        if not (isinstance(result, ToolResult) and isinstance(result.content, str)):
            raise TypeError(f"the tool returned {type(result).__name__}, not ToolResult with a text")
        return result


def _canonical(call: ToolCall) -> str:
    """The call's arguments so that equal ones are equal; for those that could not be used, why."""
    return call.invalid or json.dumps(call.arguments, sort_keys=True)


def _warning(repetition: Repetition) -> str:
    """What the model is told of its repetition, "" where there is none or the user was asked."""
    if repetition.verdict != "warn":
        return ""
    what = "This same call has" if repetition.period == 1 else f"These same {repetition.period} calls have"
    return WARNING.format(what=what, times=repetition.times)


def _again(repetition: Repetition) -> str:
    """The question whether a repetition shall go on, "" where it need not be asked."""
    if repetition.verdict != "ask":
        return ""
    what = "this call" if repetition.period == 1 else f"the same {repetition.period} calls"
    return f"the model repeats {what}, {repetition.times} times running now: shall it go on?"


def _described(error: BaseException) -> str:
    """An exception in words, also one whose own words fail."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  `__str__` is somebody else's code as well
        return type(error).__name__
