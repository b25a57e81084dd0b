"""The calls of one response: judged, asked about, run one after another, each with its result in the history at once.

Whatever goes wrong in a tool becomes an error result for the model; only a cancel passes through.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from mini_agent.agent.handover import HandOver
from mini_agent.agent.permissions import is_secret, judge
from mini_agent.agent.tools import Registry, Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.events import ApprovalAsked, ApprovalGiven, ToolFinished, ToolOutput, ToolStarted
from mini_agent.core.history import Conversation
from mini_agent.core.messages import ToolCall, ToolResult
from mini_agent.core.permission import ApprovalRequest, Approve, Decision, Mode
from mini_agent.core.surrogates import join_surrogates

CUT = (
    "Not run: the output was cut at max_tokens, so the call may be incomplete. None of this response's calls was run. "
    "Split large content into smaller edits, one call at a time."
)
CANCELLED = "Cancelled by the user: this call was not run, or not to its end."
DENIED = "Denied: {why}. Do not try the same in another way; go on without it, or ask."
STOPPED = "Not run: {reason}."


class CallRunner:
    """Runs calls and puts what happens into the hand-over.

    denied: whether a call was denied in this turn and none has succeeded since.
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
    ) -> None:
        self._tools = tools
        self._conversation = conversation
        self._approve = approve
        self._context = context
        self._mode: Mode = mode
        self._handover = handover
        self._now = now
        self._began = 0.0
        self.denied = False

    def begin_turn(self) -> None:
        self.denied = False

    async def run(self, calls: Sequence[ToolCall], *, stopped: Callable[[], bool]) -> None:
        """Runs them in order, until `stopped` says that the turn is over: a tool may have swallowed its cancel."""
        for call in calls:
            if stopped():
                return
            self._began = time.monotonic()
            result = await self._guarded(call)
            await self._finish(call, result, time.monotonic() - self._began)

    async def refuse(self, calls: Sequence[ToolCall], why: str) -> None:
        """Runs none of them; each gets `why` as its error result."""
        for call in calls:
            await self._finish(call, ToolResult(why, is_error=True), 0.0)

    async def _finish(self, call: ToolCall, result: ToolResult, elapsed_s: float) -> None:
        """The result enters the history before anything is awaited, so that no cancel can lose it."""
        content = join_surrogates(result.content)
        detail = None if result.detail is None else join_surrogates(result.detail)
        self._conversation.add_result(ToolResult(content, result.is_error, call.id))
        if not result.is_error:
            self.denied = False
        await self._handover.put(
            ToolFinished(
                t=self._now(),
                call_id=call.id,
                name=call.name,
                is_error=result.is_error,
                content=content,
                elapsed_s=elapsed_s,
                detail=detail,
            )
        )

    async def _guarded(self, call: ToolCall) -> ToolResult:
        """The call's result; a refusal or a failure of any kind is one."""
        try:
            return await self._judged(call)
        except ToolError as error:
            return ToolResult(str(error), is_error=True)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return ToolResult(f"{call.name} failed: something it waited for was cancelled", is_error=True)
        except (Exception, SystemExit) as error:  # noqa: BLE001  somebody else's code: the loop goes on whatever it raises
            return ToolResult(f"{call.name} failed: {_described(error)}", is_error=True)

    async def _judged(self, call: ToolCall) -> ToolResult:
        """Runs the call if it may be run. Raises whatever the tool raises."""
        tool, arguments = self._tools.find(call)
        preview = tool.preview(arguments, self._context)
        workspace = self._context.files.workspace
        verdict, reason = judge(
            tool.effect,
            self._mode,
            # A change that does not say what it touches may touch anything.
            inside=(tool.effect == "reads" or bool(preview.targets))
            and all(workspace.is_inside(target) for target in preview.targets),
            secret=any(is_secret(target) for target in preview.targets),
        )
        if verdict == "ask":
            request = ApprovalRequest(call.id, call.name, tool.effect, preview, reason)
            decision = await self._ask(request)
            if not decision.allowed:
                self.denied = True
                return ToolResult(DENIED.format(why=decision.why or "the user said no"), is_error=True)
        return await self._execute(tool, call, arguments)

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

    async def _execute(self, tool: Tool[Any], call: ToolCall, arguments: Any) -> ToolResult:
        async def output(text: str) -> None:
            await self._handover.put(ToolOutput(t=self._now(), call_id=call.id, text=join_surrogates(text)))

        await self._handover.put(
            ToolStarted(t=self._now(), call_id=call.id, name=call.name, arguments=call.arguments)
        )
        await self._handover.settled()
        self._began = time.monotonic()  # what the user took to answer is not the tool's time
        result: object = await tool.run(arguments, replace(self._context, output=output))
        if not (isinstance(result, ToolResult) and isinstance(result.content, str)):
            raise TypeError(f"the tool returned {type(result).__name__}, not ToolResult with a text")
        return result


def _described(error: BaseException) -> str:
    """An exception in words, also one whose own words fail."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  `__str__` is somebody else's code as well
        return type(error).__name__
