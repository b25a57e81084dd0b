"""One step of a turn: the model is asked, and what its errors call for is done before it is asked again (product R9)."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from mini_agent.agent import compaction
from mini_agent.agent.handover import HandOver
from mini_agent.agent.recovery import Measure, Recovery
from mini_agent.core import estimates
from mini_agent.core.errors import ModelError
from mini_agent.core.events import (
    ChannelToken,
    Compacted,
    Completed,
    FirstToken,
    ImagesStripped,
    Level,
    Notice,
    ReasoningCompleted,
    ResponseStarted,
    Retrying,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.history import Conversation
from mini_agent.core.messages import Message, Request, Response, ToolSpec
from mini_agent.core.permission import Mode
from mini_agent.core.profile import Effort
from mini_agent.models.base import Streamer, new_attempt
from mini_agent.workspace.spill import Spill, cut

_NO_ROOM = (
    "The message itself may be too long; else begin anew (/clear), or take a model with a larger window."
)

_CAPS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""What the cap on an answer is called."""

_OF_AN_ANSWER = (FirstToken, ChannelToken, ToolCallDelta, ResponseStarted, ReasoningCompleted)
"""What a summary's request says of itself; it would look like an answer to the user."""


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What the requests of a turn are made with. max_steps: how many requests one turn may make. window: the model's
    context window in tokens, None where it is not known.
    """

    model: str
    system: str
    mode: Mode = "ask"
    max_steps: int = 100
    max_tokens: int | None = None
    effort: Effort | None = None
    stream: bool = True
    window: int | None = None


class Asker:
    """Asks for the next step of a conversation, its events put into the hand-over, its answer into the history.

    spill: where the whole is kept of a result that is cut short. new_key: reads the key once more from where it came;
    whether it is another one now. partial: the text that an answer
    under way has said so far.
    """

    def __init__(
        self,
        model: Streamer,
        conversation: Conversation,
        specs: tuple[ToolSpec, ...],
        *,
        settings: TurnSettings,
        handover: HandOver,
        spill: Spill | None,
        new_key: Callable[[], bool] | None,
        now: Callable[[], float],
    ) -> None:
        self._model = model
        self._conversation = conversation
        self._specs = specs
        self._handover = handover
        self._spill = spill
        self._new_key = new_key
        self._now = now
        self._recovery = Recovery()
        self.use(settings)
        self.partial: list[str] = []

    def use(self, settings: TurnSettings) -> None:
        """Makes the next requests with these."""
        self._settings = settings
        self._recovery.window = settings.window

    async def ask(self) -> Response:
        """The model's next answer; it is in the history when this returns. Raises ModelError."""
        self._recovery.begin()
        while True:
            request = self._request(self._conversation.sendable())
            await self._handover.settled()
            try:
                return await self._answer(request)
            except ModelError as error:
                self.partial.clear()  # what a broken stream had said is no answer
                if error.refused in _CAPS and self._settings.max_tokens is None:
                    error.refused = None  # the family's own cap: without it there is another just like it
                measure = self._recovery.measure(error, request.messages)
                if measure is None or not await self._take(measure, error, request):
                    if error.kind in ("context_overflow", "too_large"):
                        error.hint = error.hint or _NO_ROOM
                    raise

    def _request(self, messages: tuple[Message, ...]) -> Request:
        return Request(
            messages=messages,
            system=self._settings.system,
            tools=self._specs,
            model=self._settings.model,
            max_tokens=self._settings.max_tokens,
            effort=self._settings.effort,
            stream=self._settings.stream,
        )

    async def _answer(self, request: Request) -> Response:
        """One request, with whatever attempts it takes. Raises ModelError."""
        response: Response | None = None
        async with aclosing(
            self._model.stream(request, new_attempt(without=self._recovery.without))
        ) as events:
            async for event in events:
                match event:
                    case StreamStarted() | Retrying():
                        self.partial.clear()
                    case ChannelToken(channel="text", text=text):
                        self.partial.append(text)
                    case ImagesStripped():
                        self._recovery.refuses("images")
                    case Completed():
                        response = event.response
                        if (overflow := self._recovery.overflow(response, request.messages)) is not None:
                            raise overflow  # the answer to half a prompt: it is not passed on
                        self.partial.clear()
                        self._conversation.add_response(response)
                    case _:
                        pass
                await self._handover.put(event)
        if response is None:
            raise RuntimeError("the model's stream ended without Completed")
        if (warning := self._recovery.warning(response, request)) is not None:
            await self._notice(warning)
        return response

    # What an error calls for

    async def _take(self, measure: Measure, error: ModelError, request: Request) -> bool:
        """Does it; whether the request is worth making again. Raises ModelError."""
        match measure.kind:
            case "leave_out":
                self._recovery.refuses(measure.what)
                await self._notice(_left_out(measure.what))
                return True
            case "read_key":
                if self._new_key is None or not self._new_key():
                    return False
                await self._notice(
                    "the key was refused, and is another one now: asked again with that", "info"
                )
                return True
            case "shorten":
                return await self._shorten(error, request) or await self._next(error, request)
            case "compact":
                why = (
                    "is too large"
                    if error.kind == "too_large"
                    else "no longer fits the model's context window"
                )
                target = self._recovery.target(error, request.messages)
                return await self._compact(target, request, f"the conversation {why}: it is summed up")

    async def _next(self, error: ModelError, request: Request) -> bool:
        measure = self._recovery.measure(error, request.messages)
        return measure is not None and await self._take(measure, error, request)

    async def _shorten(self, error: ModelError, request: Request) -> bool:
        """Cuts the largest tool results; whether that made it fit, by our own count."""
        target = self._recovery.target(error, request.messages)
        shorter = compaction.shortened(request.messages, target, self._cut)
        if estimates.tokens(shorter) > target:
            return False
        await self._replace(request.messages, shorter)
        return True

    async def compact(self) -> bool:
        """Sums the conversation up because the user wants it; whether there was anything to sum up. Raises ModelError."""
        request = self._request(self._conversation.sendable())
        await self._handover.settled()
        target = estimates.tokens(request.messages) // 2
        return await self._compact(target, request, "the conversation is summed up")

    async def _compact(self, target: int, request: Request, said: str) -> bool:
        """Has the old part of the history summed up; whether that gave anything. Raises ModelError.

        said: what the user is told first.
        """
        messages = compaction.shortened(request.messages, target, self._cut)
        parts = compaction.split(messages, target // 2)
        alone = not parts.kept and len(parts.old) < 2
        if alone or estimates.tokens((Message("user", parts.prompt),)) > target:
            return False  # what the user wrote last has to go out whole, and is too long by itself
        await self._notice(said)
        for share in (2, 6):  # the second, much smaller, where even the record of it was too long
            summary = await self._summary(compaction.summary_request(parts.old, target // share, request))
            if summary:
                await self._replace(request.messages, parts.joined(summary))
                return True
        return False

    def _cut(self, text: str, size: int) -> str:
        return cut(text, self._spill, size)

    async def _summary(self, request: Request) -> str:
        """The summary, "" where the model gives none. Raises ModelError where it can't be asked at all."""
        while True:
            try:
                response = await self._unseen(request)
            except ModelError as error:
                measure = self._recovery.measure(error, request.messages, makes_room=False)
                if measure is not None and await self._take(measure, error, request):
                    continue
                if error.kind in ("context_overflow", "too_large", "empty", "repetition"):
                    return ""
                raise
            # A refusal, or a text that was cut, would stand for everything that was said.
            return response.text.strip() if response.stop_reason == "end_turn" else ""

    async def _unseen(self, request: Request) -> Response:
        """An answer that is not the user's: of its events those that tell of waiting and retrying are passed on."""
        response = Response(())
        async with aclosing(
            self._model.stream(request, new_attempt(without=self._recovery.without))
        ) as events:
            async for event in events:
                if isinstance(event, Completed):
                    response = event.response
                elif not isinstance(event, _OF_AN_ANSWER):
                    await self._handover.put(event)
        return response

    async def _replace(self, before: tuple[Message, ...], after: list[Message]) -> None:
        self._conversation.replace(after)
        await self._handover.put(
            Compacted(
                t=self._now(),
                messages_before=len(before),
                messages_after=len(after),
                tokens_before=estimates.tokens(before),
                tokens_after=estimates.tokens(after),
            )
        )

    async def _notice(self, text: str, level: Level = "warning") -> None:
        await self._handover.put(Notice(t=self._now(), level=level, text=text))


def _left_out(what: str) -> str:
    """What the user is told of something that is left out from now on."""
    if what == "reasoning":
        return "the provider does not take the reasoning as it was sent back: asked again the other way"
    return f"the provider refuses {what.lstrip('/')}: asked again without it"
