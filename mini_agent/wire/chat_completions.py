"""The chat-completions family, inwards: its chunks to our events and to a `Response`; no I/O.

The shapes are those of OpenAI's API reference; what vendors make of them is tolerated: what is missing, null, unknown or
of another type is skipped, and only what could make an answer silently shorter is an error. A streamed answer and a whole
one go through the same code (product W6).
"""

from typing import Any

from mini_agent.core.errors import CutError, ErrorKind, ModelError, ProtocolError, ProviderError
from mini_agent.core.events import Notice, StreamEvent
from mini_agent.core.messages import Response, StopReason, Usage
from mini_agent.core.profile import Profile
from mini_agent.core.surrogates import join_surrogates
from mini_agent.wire.assembly import Assembler, Origin
from mini_agent.wire.chat_request import encode
from mini_agent.wire.failures import failure_inside
from mini_agent.wire.framing import ServerSentEvent
from mini_agent.wire.loading import encodable, loads
from mini_agent.wire.think_tags import ThinkTags

__all__ = ["ChatDecoder", "encode"]

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_overflow",
}

# Finish reasons by which a provider says that it broke the answer off: nothing of it is complete.
_BROKEN_OFF: dict[str, ErrorKind] = {
    "insufficient_system_resource": "overloaded",
    "error": "provider",
    "network_error": "provider",
}

_SIGNS_OF_LIFE = frozenset({"ping", "heartbeat", "keepalive", "keep-alive"})
_KEYS_BEHIND = frozenset({"refusal", "tool_calls", "function_call"})
_CALL_KEYS = frozenset({"index", "id", "type", "function"})
_COUNT_LIMIT = 2**53


class ChatDecoder:
    """One attempt's answer, from its server-sent events or from its one document.

    Give it every event; stop at `ended` or at `failure`. `close` gives the answer, or raises what is wrong with it.
    """

    def __init__(self, profile: Profile, origin: Origin) -> None:
        self._reasoning_fields = (*profile.reasoning_fields, "reasoning_details")
        self._reasoning_keys = frozenset(self._reasoning_fields)
        self._end_marks = {form.upper() for mark in profile.end_marks for form in (mark, f'"{mark}"')}
        self._mark_size = max(map(len, self._end_marks), default=0)
        self._assembler = Assembler(origin)
        self._tags = ThinkTags(self._assembler)
        self._ended = False
        self._failure: ModelError | None = None
        self._events = 0
        self._recognised = False
        self._stray: str | None = None
        self._choice_index: object = None
        self._deltas = False
        self._finish_reason: str | None = None
        self._at_end = False
        self._whole = False
        self._refused = False
        self._usage: dict[str, int] = {}
        self._id = ""
        self._model = ""

    @property
    def ended(self) -> bool:
        """Whether the end mark was seen; what follows it is ignored."""
        return self._ended

    @property
    def finished(self) -> bool:
        """Whether the answer is complete, though an end mark or the usage may follow: `close` may be called."""
        return self._finish_reason is not None or self._whole

    @property
    def failure(self) -> ModelError | None:
        """What makes the attempt fail although no exception was raised, so that its notice is delivered first."""
        return self._failure

    @property
    def usage(self) -> Usage | None:
        """What was reported so far, None where nothing was."""
        return Usage(**self._usage) if self._usage else None

    def decode(self, event: ServerSentEvent, n: int, t: float, *, at_end: bool = False) -> list[StreamEvent]:
        """Our events of one server-sent event.

        n: its number in its attempt, from 1. t: unix seconds. at_end: it came from the framing's `close`, so that a part of
        it may be missing. Raises the provider's own error where the event holds one. After it, look at `failure`.
        """
        if self._ended or self._failure is not None:
            return []
        data = event.data
        self._events += 1
        self._at_end = at_end
        self._assembler.at(n, t)
        stripped = data.strip()
        if len(stripped) <= self._mark_size and stripped.upper() in self._end_marks:
            self._ended = True
            self._let_go()
            return self._assembler.take()
        if event.event != "message":
            if event.event == "error":
                raise failure_inside(_loaded(data))
            if event.event in _SIGNS_OF_LIFE:
                return []
        if not stripped:
            return []
        try:
            payload = loads(data)
        except ValueError as error:
            return self._undecodable(data, n, t, error)
        if isinstance(payload, dict):
            self._chunk(payload, data)
        elif isinstance(payload, list):  # some put their errors into a list
            for chunk in payload:
                if isinstance(chunk, dict):
                    self._chunk(chunk, data)
        return self._assembler.take()

    def close(self) -> Response:
        """The answer. Raises CutError where it ended before its end, ProtocolError where it was none, ProviderError."""
        if self._failure is not None:
            raise self._failure
        if not (self._ended or self.finished):
            raise self._cut()
        reason = self._finish_reason
        if reason is not None and (kind := _BROKEN_OFF.get(_bare(reason))):
            raise ProviderError(
                f"the provider broke the answer off: {reason}", kind=kind, retryable=True, code=reason
            )
        self._let_go()
        return Response(
            self._assembler.blocks(),
            stop_reason=self._stop_reason(),
            raw_stop_reason=reason,
            usage=self.usage or Usage(),
            id=self._id,
            model=self._model,
        )

    def _chunk(self, chunk: dict[str, Any], raw: str) -> None:
        choices = chunk.get("choices")
        if chunk.get("error") or (not choices and "error" in (chunk.get("type"), chunk.get("object"))):
            raise failure_inside(encodable(chunk))
        if not (self._id and self._model):
            self._id = self._id or _string(chunk.get("id"))
            self._model = self._model or _string(chunk.get("model"))
        if isinstance(choices, list):
            self._recognised = True
            for choice in choices:
                if isinstance(choice, dict):
                    self._choice(choice)
        usage = chunk.get("usage")
        if isinstance(usage, dict):
            self._recognised = True
            self._count(usage)
        if not self._recognised and not self._stray and _string(chunk.get("type")) not in _SIGNS_OF_LIFE:
            self._stray = raw

    def _choice(self, choice: dict[str, Any]) -> None:
        """One choice of a chunk. Of several answers side by side, the one that appears first is the answer."""
        index = choice.get("index") or 0
        if self._choice_index is None:
            self._choice_index = index
        elif index != self._choice_index:
            return
        if error := choice.get("error"):
            raise failure_inside({"error": encodable(error)})
        delta = choice.get("delta")
        if delta and isinstance(delta, dict):
            self._deltas = True
            self._piece(delta)
        message = choice.get("message")
        if isinstance(message, dict):
            self._message(message)
        reason = choice.get("finish_reason")
        if reason and self._finish_reason is None and isinstance(reason, str):
            self._finish_reason = join_surrogates(reason)
            self._let_go()

    def _message(self, message: dict[str, Any]) -> None:
        """A whole message: an answer that was not streamed, or what some send at the end of one that was.

        What the deltas have said already is not said again. Without deltas, messages are taken for the pieces.
        """
        if self._deltas:
            self._let_go()
            said: set[str] = set()
            if self._assembler.has_text:
                said |= {"content", "refusal"}
            if self._assembler.has_reasoning:
                said |= self._reasoning_keys
            if self._assembler.has_calls:
                said |= _KEYS_BEHIND
            message = {name: value for name, value in message.items() if name not in said}
        self._piece(message)
        if self._at_end:  # a document is whole or it could not have been decoded
            self._whole = True
            self._let_go()

    def _piece(self, piece: dict[str, Any]) -> None:
        """A delta or a message: reasoning first, calls last, wherever they stand in it."""
        if not self._reasoning_keys.isdisjoint(piece):
            self._reasoning(piece)
        if content := piece.get("content"):
            if isinstance(content, str):
                self._tags.add(content)
            elif isinstance(content, list):
                self._parts(content)
        if not _KEYS_BEHIND.isdisjoint(piece):
            self._behind(piece)

    def _reasoning(self, piece: dict[str, Any]) -> None:
        """The first field that holds some, because there are providers that send the same under two names."""
        for field in self._reasoning_fields:
            if text := _flat(piece.get(field)):
                self._assembler.reasoning(text, field)
                return

    def _behind(self, piece: dict[str, Any]) -> None:
        """What comes after the content."""
        if refusal := _string(piece.get("refusal")):
            self._refused = True
            self._assembler.text(refusal)
        if calls := piece.get("tool_calls"):
            entries = calls if isinstance(calls, list) else [calls]
            for place, call in enumerate(entries):
                if isinstance(call, dict):
                    self._tool_call(call, place if len(entries) > 1 else None)
        elif isinstance(function := piece.get("function_call"), dict):
            self._assembler.tool_call(None, None, function.get("name"), function.get("arguments"))

    def _parts(self, parts: list[Any]) -> None:
        """Content as a list of parts; reasoning may be one of them."""
        for part in parts:
            if isinstance(part, dict) and (thought := _flat(part.get("thinking"))):
                self._assembler.reasoning(thought)
            elif text := _flat([part]):
                self._tags.add(text)

    def _tool_call(self, call: dict[str, Any], place: int | None) -> None:
        """An entry of `tool_calls`. place: where it stands among several, which are different calls if they are named."""
        function = call.get("function")
        if not isinstance(function, dict):
            if call.get("type") not in (None, "", "function"):
                return  # a kind of tool that nobody here knows
            function = {}
        extra: dict[str, Any] = {}
        if not _CALL_KEYS.issuperset(call):
            extra = {
                name: value for name, value in call.items() if name not in _CALL_KEYS and value is not None
            }
        name = function.get("name")
        index = call.get("index")
        if index is None and name:
            index = place
        self._assembler.tool_call(index, call.get("id"), name, function.get("arguments"), extra)

    def _count(self, usage: dict[str, Any]) -> None:
        """The last number wins, field by field: some report with every chunk, and not always all of it."""
        read = usage.get("prompt_tokens_details")
        written = usage.get("completion_tokens_details")
        read = read if isinstance(read, dict) else {}
        written = written if isinstance(written, dict) else {}
        for name, value in (
            ("input_tokens", usage.get("prompt_tokens")),
            ("output_tokens", usage.get("completion_tokens")),
            ("cached_tokens", usage.get("prompt_cache_hit_tokens")),
            ("cached_tokens", read.get("cached_tokens")),
            ("reasoning_tokens", written.get("reasoning_tokens")),
        ):
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _COUNT_LIMIT:
                self._usage[name] = value

    def _let_go(self) -> None:
        """Nothing that could complete a held back piece is likely to come."""
        self._tags.end()
        self._assembler.end()

    def _stop_reason(self) -> StopReason:
        """What the calls say counts more than the provider's word, which is wrong often enough."""
        reason = _STOP_REASONS.get(_bare(self._finish_reason or "stop"), "other")
        if self._assembler.has_calls:
            return "tool_use" if reason in ("end_turn", "other") else reason
        if self._refused and reason == "end_turn":
            return "refusal"
        return "end_turn" if reason == "tool_use" else reason

    def _undecodable(self, data: str, n: int, t: float, error: ValueError) -> list[StreamEvent]:
        """An event that is no JSON. Before the finish reason it may have held a part of the answer (W3)."""
        if self._at_end and not self.finished:
            self._failure = CutError("the stream ended inside an event", body=data)
            return []
        text = f"event {n} of the stream is not JSON: {error}"
        if not self.finished:
            self._failure = ProtocolError(text, retryable=True, body=data)
        return [Notice(t=t, level="warning", text=text, parse_error=data)]

    def _cut(self) -> ModelError:
        """Why there is no answer though nothing failed."""
        if self._stray is not None and not self._recognised:
            return ProtocolError(
                "what came is JSON, but no chat completion",
                retryable=False,
                body=self._stray,
                hint="Check the base URL (it often ends in /v1) and the API family.",
            )
        if not self._events:
            return CutError("the answer was empty: not one event came")
        return CutError(
            f"the stream ended before its end, with neither a finish reason nor an end mark, after {self._events} events"
            f" ({self._assembler.describe()})"
        )


def _string(value: object) -> str:
    return join_surrogates(value) if isinstance(value, str) else ""


def _bare(reason: str) -> str:
    """A finish reason to look up; some write it in capitals."""
    return reason.strip().lower()


def _flat(value: object) -> str:
    """The text of a field that is a string or a list of parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    texts = (part.get("text") or part.get("summary") for part in value if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _loaded(data: str) -> Any:
    """The value of an event, or its text where it is no JSON."""
    try:
        return encodable(loads(data))
    except ValueError:
        return data
