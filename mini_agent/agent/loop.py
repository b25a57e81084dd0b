"""The agent: runs one turn, from the user's message to the answer, and yields what happens as events.

A turn is: ask the model; run the calls it made; ask again; until it answers without a call. The agent knows neither
retries nor tracing (they are wrapped around its model) nor any screen (it only yields).
"""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from mini_agent.agent.asking import Asker, TurnSettings
from mini_agent.agent.calls import CUT, STOPPED, CallRunner
from mini_agent.agent.handover import HandOver
from mini_agent.agent.tools import Registry, ToolContext
from mini_agent.core.errors import ErrorInfo, ErrorKind, ModelError
from mini_agent.core.events import (
    OWN_CALL,
    AgentEvent,
    Failed,
    Notice,
    TurnFinished,
    TurnReason,
    TurnStarted,
    UserMessage,
)
from mini_agent.core.history import CANCELLED, Conversation
from mini_agent.core.messages import Image, Response, StopReason, ToolCall, ToolResult, ToolSpec, Usage
from mini_agent.core.permission import Approve
from mini_agent.core.surrogates import join_surrogates
from mini_agent.models.base import Streamer

_NO_ANSWER: dict[StopReason, tuple[ErrorKind, str]] = {
    "content_filter": ("provider", "the provider's content filter stopped the answer"),
    "refusal": ("provider", "the model refused to answer"),
    "max_tokens": (
        "empty",
        "max_tokens was used up before the answer began: raise --max-tokens, or lower --effort",
    ),
    "context_overflow": ("context_overflow", "the conversation no longer fits the model's context window"),
    "pause": ("empty", "the provider paused before it answered"),
}
"""Ends that are not an answer, whatever text came with them; but for max_tokens and pause, where only no text is none."""


MOST_CUTS = 4
"""Responses running whose calls were cut; one that does not get smaller after three words about it will not."""

GO_ON = "You were interrupted. Go on from where your answer broke off."
"""Providers take no history that ends with the assistant's word, so somebody has to say it."""

SHELL = "run_bash"
"""The tool that runs a command of the user's own."""

_OWN_COMMAND = "I ran a command myself:\n\n{command}\n\nIt gave:\n\n{output}"


class Agent:
    """Runs turns on one conversation, one at a time.

    approve: asks the user about a call; it may be cancelled with the turn. handover: shared with whoever else tells
    events of the turn (the tracing wrapper). queued: gives, once, what the user wrote while the turn ran. new_key: reads
    the key once more from where it came; whether it is another one now. now: unix seconds.
    """

    def __init__(
        self,
        model: Streamer,
        tools: Registry,
        conversation: Conversation,
        approve: Approve,
        *,
        context: ToolContext,
        settings: TurnSettings,
        handover: HandOver | None = None,
        queued: Callable[[], Sequence[str]] = tuple,
        new_key: Callable[[], bool] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._conversation = conversation
        self._specs = tools.specs
        self._settings = settings
        self._handover = handover or HandOver()
        self._queued = queued
        self._now = now
        self._asker = Asker(
            model,
            conversation,
            self._specs,
            settings=settings,
            handover=self._handover,
            spill=context.spill,
            new_key=new_key,
            now=now,
        )
        self._calls = CallRunner(
            tools,
            conversation,
            approve,
            context=context,
            mode=settings.mode,
            handover=self._handover,
            now=now,
        )
        self._task: asyncio.Task[None] | None = None
        self._begun = False
        self._cancelled = False
        self._usage = Usage()
        self._text = ""

    async def run(self, prompt: str | None, images: Sequence[Image] = ()) -> AsyncGenerator[AgentEvent, None]:
        """One turn; its last event is `TurnFinished`. Closing it early tears the turn down without further events.

        prompt: None goes on from where a turn failed, with the history as it is; where an answer broke off, the model is
        asked to go on. images: go out with it.
        """
        if prompt is None and self._conversation.is_interrupted:
            prompt = GO_ON
        prompt = None if prompt is None else join_surrogates(prompt)
        async with aclosing(self._run(lambda: self._turn(prompt, tuple(images)))) as events:
            async for event in events:
                yield event

    async def compact(self) -> AsyncGenerator[AgentEvent, None]:
        """Has the conversation summed up, as a turn of its own."""
        async with aclosing(self._run(self._compact)) as events:
            async for event in events:
                yield event

    async def shell(self, command: str) -> AsyncGenerator[AgentEvent, None]:
        """Runs a command of the user's own, as a turn of its own; the model learns of it with the next request."""
        async with aclosing(self._run(lambda: self._shell(command))) as events:
            async for event in events:
                yield event

    async def _run(self, turn: Callable[[], Awaitable[TurnReason]]) -> AsyncGenerator[AgentEvent, None]:
        if self._task is not None:
            raise RuntimeError("a turn is running already")
        self._begun = self._cancelled = False
        self._usage, self._text = Usage(), ""
        self._asker.partial.clear()
        self._handover.open()
        task = self._task = asyncio.create_task(self._work(turn), name="turn")
        try:
            async with aclosing(self._handover.events()) as events:
                async for event in events:
                    yield event
            await task  # an exception left in it is a defect of ours: it is not hidden
        finally:
            self._handover.close()
            self._task = None
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What the model is told of."""
        return self._specs

    @property
    def settings(self) -> TurnSettings:
        return self._settings

    def use(self, settings: TurnSettings) -> None:
        """Makes the next turns with these."""
        self._settings = settings
        self._asker.use(settings)
        self._calls.mode = settings.mode

    def cancel(self) -> None:
        """Ends the turn; it goes on yielding up to `TurnFinished(cancelled)`. Does nothing where there is no turn."""
        if self._task is None or self._cancelled:
            return  # a second cancel must not end the clean-up of the first
        self._cancelled = True
        if self._begun:  # a task that has not begun would end without a word
            self._task.cancel()

    async def _work(self, turn: Callable[[], Awaitable[TurnReason]]) -> None:
        """The turn in its own task: whatever happens, the history is sendable and the turn has its end."""
        self._begun = True
        reason: TurnReason
        try:
            try:
                reason = await turn()
            except asyncio.CancelledError:
                if not self._cancelled:
                    raise  # torn down from outside: nobody listens any more
                reason = "cancelled"
            except ModelError as error:
                self._handover.put_now(Failed(t=self._now(), error=error.info()))
                reason = "repetition" if error.kind == "repetition" else "failed"
            finally:
                self._settle()
            spent = self._handover.spent or self._usage  # without a tracing wrapper: of the answers alone
            self._handover.put_now(TurnFinished(t=self._now(), reason=reason, text=self._text, usage=spent))
        finally:
            self._handover.close()

    def _settle(self) -> None:
        """Leaves the history as every provider takes it: what was said stays, every call has its result. Awaits
        nothing.
        """
        if self._asker.partial:
            self._text = "".join(self._asker.partial)
            self._asker.partial.clear()
            self._conversation.add_partial(self._text)
        for call in self._conversation.unanswered():
            self._conversation.add_result(ToolResult(CANCELLED, is_error=True, call_id=call.id))

    async def _turn(self, prompt: str | None, images: tuple[Image, ...]) -> TurnReason:
        await self._handover.put(TurnStarted(t=self._now(), prompt=prompt or "", images=images))
        if prompt is not None:
            self._conversation.add_user(prompt, images)
        self._calls.begin_turn()
        cuts = 0
        for step in range(self._settings.max_steps):
            if self._cancelled:  # a tool may have swallowed it
                return "cancelled"
            if step:
                self._deliver()
            response = await self._asker.ask()
            self._text = response.text
            self._usage += response.usage
            if self._is_no_answer(response):
                return await self._no_answer(response)
            if not response.tool_calls:
                await self._remark(response)
                return "denied" if self._calls.denied else "done"
            if response.stop_reason == "max_tokens":
                cuts += 1
                await self._calls.refuse(response.tool_calls, CUT)
                if cuts >= MOST_CUTS:
                    await self._notice(f"stopped: cut at max_tokens {cuts} times running; raise --max-tokens")
                    return "repetition"
                await self._notice("the output was cut at max_tokens: none of its calls was run")
            else:
                cuts = 0
                await self._calls.run(response.tool_calls, stopped=lambda: self._cancelled)
            if self._calls.repeating:
                await self._notice("stopped: the model makes the same calls over and over")
                return "repetition"
        await self._notice(f"stopped at the cap on steps per turn: {self._settings.max_steps}")
        return "max_steps"

    async def _compact(self) -> TurnReason:
        await self._handover.put(TurnStarted(t=self._now(), prompt=""))
        if not await self._asker.compact():
            await self._notice("there is nothing to sum up")
        return "done"

    async def _shell(self, command: str) -> TurnReason:
        await self._handover.put(TurnStarted(t=self._now(), prompt=""))
        call = ToolCall(f"{OWN_CALL}{uuid.uuid4().hex[:8]}", SHELL, {"command": join_surrogates(command)})
        result = await self._calls.by_user(call)
        text = _OWN_COMMAND.format(command=call.arguments["command"], output=result.content)
        self._conversation.add_user(text)
        self._handover.put_now(UserMessage(t=self._now(), text=text, queued=False))
        return "done"

    def _deliver(self) -> None:
        """Messages that the user wrote meanwhile go out with the next request. Awaits nothing, so that none is lost."""
        for text in self._queued():
            self._conversation.add_user(text)
            self._handover.put_now(UserMessage(t=self._now(), text=join_surrogates(text), queued=True))

    @staticmethod
    def _is_no_answer(response: Response) -> bool:
        said = response.text.strip() or response.tool_calls
        return response.stop_reason in _NO_ANSWER and not (
            said and response.stop_reason in ("max_tokens", "pause")
        )

    async def _remark(self, response: Response) -> None:
        """What the user should know of an answer that is one, but not whole."""
        match response.stop_reason:
            case "max_tokens":
                await self._notice("the answer was cut at max_tokens")
            case "pause":
                await self._notice("the provider paused its answer here: say so if it is to go on")
            case "other" if response.raw_stop_reason:
                await self._notice(f"the provider ended the answer with {response.raw_stop_reason!r}")
            case _:
                pass

    async def _no_answer(self, response: Response) -> TurnReason:
        """A response that ended in place of an answer: its calls are not run, and the turn fails with the reason."""
        kind, message = _NO_ANSWER[response.stop_reason]
        await self._calls.refuse(response.tool_calls, STOPPED.format(reason=message))
        await self._handover.put(
            Failed(t=self._now(), error=ErrorInfo(kind=kind, message=message, code=response.raw_stop_reason))
        )
        return "failed"

    async def _notice(self, text: str) -> None:
        await self._handover.put(Notice(t=self._now(), level="warning", text=text))
