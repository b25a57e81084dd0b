"""The chat-completions family, inwards: its chunks to our events and to a `Response`; no I/O.

The shapes are those of OpenAI's API reference; what vendors make of them is tolerated: what is missing, null, unknown or
of another type is skipped, and only what could make an answer silently shorter is an error. A streamed answer and a whole
one go through the same code (product W6).
"""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import msgspec

from mini_agent.core.errors import ProtocolError
from mini_agent.core.events import Channel, StreamEvent
from mini_agent.core.messages import Response
from mini_agent.core.profile import Profile
from mini_agent.core.surrogates import join_surrogates
from mini_agent.wire.assembly import Origin
from mini_agent.wire.chat_plain import plain_decoders
from mini_agent.wire.chat_request import REASONING_DETAILS, encode
from mini_agent.wire.decoding import Decoder, at, mapping, string
from mini_agent.wire.failures import failure_inside
from mini_agent.wire.framing import ServerSentEvent
from mini_agent.wire.loading import dumps, encodable
from mini_agent.wire.think_tags import ThinkTags

__all__ = ["ChatDecoder", "encode"]

_MISSES = 50
"""So many chunks in a row that are not plain: this provider's never are."""

_LEAKED = re.compile(r"<[｜‖|]{1,2}\s?DSML\s?[｜‖|]{1,2}\s?(?:tool_calls|function_calls|invoke)")  # noqa: RUF001  they are
"""DeepSeek's own markup for calls, in the spellings of its bars."""

_KEYS_BEHIND = frozenset({"refusal", "tool_calls", "function_call"})
_CALL_KEYS = frozenset({"index", "id", "type", "function"})


class ChatDecoder(Decoder):
    """Reads chat-completion chunks and whole completions."""

    WHAT = "chat completion"
    ORDER = "canonical"

    def __init__(self, profile: Profile, origin: Origin, asked: Mapping[str, Any] | None = None) -> None:
        super().__init__(profile, origin, asked)
        self._reasoning_fields = (*profile.reasoning_fields, REASONING_DETAILS)
        self._reasoning_keys = frozenset(self._reasoning_fields)
        self._tags = ThinkTags(self._assembler)
        self._choice_index: object = None
        self._deltas = False
        self._details: list[dict[str, Any]] | None = [] if profile.echo_field == REASONING_DETAILS else None
        self._usage_paths = [path.split(".") for path in profile.usage_paths if path != "usage"]
        self._plain = plain_decoders(profile)
        self._plain_fields = profile.reasoning_fields
        self._channel: Channel = "text"
        self._flows = False
        self._misses = 0

    def decode(self, event: ServerSentEvent, n: int, t: float, *, at_end: bool = False) -> list[StreamEvent]:
        """As for `Decoder`; the chunks that are nothing but one more piece go a shorter way to the same end."""
        if self._flows and event.event == "message" and (events := self._decode_plain(event.data, n, t)):
            return events
        events = super().decode(event, n, t, at_end=at_end)
        self._flows = bool(
            self._plain
            and self._id
            and self._model
            and self._misses < _MISSES
            and not (self._ended or self._failure or self.finished or self._details)
        )
        return events

    def _decode_plain(self, data: str, n: int, t: float) -> list[StreamEvent] | None:
        """The piece of a plain chunk; None, and nothing done, for any other chunk. Asked while the answer flows."""
        channel = self._channel
        try:
            choice = self._plain[channel](data).choices[0]
        except (msgspec.DecodeError, RecursionError):
            # Text follows reasoning: perhaps it is the other kind from now on.
            self._channel = "text" if channel == "reasoning" else "reasoning"
            self._misses += 1
            return None
        if choice.index != self._choice_index:
            return None
        if channel == "text":
            piece = choice.delta.content
            if not piece or not self._tags.passes(piece):
                return None
        else:
            piece = next(filter(None, (getattr(choice.delta, field) for field in self._plain_fields)), None)
            if not piece:
                return None
        events = self._assembler.piece(channel, piece, n, t)
        if events is not None:
            self._events += 1
            self._misses = 0
            self._deltas = True
        return events

    def close(self) -> Response:
        """As for `Decoder`."""
        if self._details:
            details = dumps(encodable(_joined(self._details)))
            self._assembler.seal(REASONING_DETAILS, field=REASONING_DETAILS, encrypted=details)
        response = super().close()
        if "DSML" in response.text and not response.tool_calls and _LEAKED.search(response.text):
            # The server failed to make a call of it: nothing was run, and as an answer it would end the turn.
            raise ProtocolError(
                "the model's tool call came as text, in its own markup", retryable=True, body=response.text
            )
        return response

    def _check(self, payload: dict[str, Any]) -> None:
        """What has choices is an answer, whatever it calls itself."""
        if payload.get("error") or not payload.get("choices"):
            super()._check(payload)

    def _payload(self, payload: dict[str, Any], name: str) -> None:
        choices = payload.get("choices")
        if not (self._id and self._model):
            self._id = self._id or string(payload.get("id"))
            self._model = self._model or string(payload.get("model"))
        if isinstance(choices, list):
            self._recognised = True
            for choice in choices:
                if isinstance(choice, dict):
                    self._choice(choice)
        usage = payload.get("usage")
        if self._usage_paths and not isinstance(usage, dict):
            usage = next(filter(None, (at(payload, path) for path in self._usage_paths)), None)
        if isinstance(usage, dict):
            self._recognised = True
            self._tokens(usage)

    def _choice(self, choice: dict[str, Any]) -> None:
        """One choice of a chunk. Of several answers side by side, the one that appears first is the answer."""
        index = choice.get("index") or 0
        if self._choice_index is None:
            self._choice_index = index
        elif index != self._choice_index:
            return
        if error := choice.get("error"):
            raise failure_inside({"error": encodable(error)}, self._asked)
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
        details = piece.get(REASONING_DETAILS)
        if self._details is not None and isinstance(details, list):
            self._details += (detail for detail in details if isinstance(detail, dict))
        for field in self._reasoning_fields:
            if text := _flat(piece.get(field)):
                self._assembler.reasoning(text, field)
                return

    def _behind(self, piece: dict[str, Any]) -> None:
        """What comes after the content."""
        if refusal := string(piece.get("refusal")):
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

    def _tokens(self, usage: dict[str, Any]) -> None:
        read = mapping(usage.get("prompt_tokens_details"))
        written = mapping(usage.get("completion_tokens_details"))
        output, reasoning = usage.get("completion_tokens"), written.get("reasoning_tokens")
        self._count(
            input_tokens=usage.get("prompt_tokens"),
            output_tokens=_with(reasoning, output, usage),
            cached_tokens=usage.get("prompt_cache_hit_tokens", usage.get("cached_tokens")),
            cache_write_tokens=read.get("cache_write_tokens"),
            reasoning_tokens=reasoning,
        )
        self._count(cached_tokens=read.get("cached_tokens"))

    def _let_go(self) -> None:
        self._tags.end()
        super()._let_go()


def _flat(value: object) -> str:
    """The text of a field that is a string or a list of parts."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    texts = (part.get("text") or part.get("summary") for part in value if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _with(reasoning: object, output: object, usage: dict[str, Any]) -> object:
    """The output with the reasoning in it. Some leave it out (xAI), which their total shows."""
    read, total = usage.get("prompt_tokens"), usage.get("total_tokens")
    if isinstance(reasoning, int) and isinstance(output, int) and isinstance(read, int) and reasoning:
        return output + reasoning if total == read + output + reasoning else output
    return output


def _joined(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A sequence of `reasoning_details` as it was before it was cut into deltas.

    Neighbours of one type and index are pieces of one entry: text and summary go on, the rest is said once. What is
    encrypted is whole.
    """
    joined: list[dict[str, Any]] = []
    for (kind, _), group in groupby(details, lambda one: (one.get("type"), one.get("index"))):
        pieces = list(group)
        if kind == "reasoning.encrypted":
            joined += pieces
            continue
        entry: dict[str, Any] = {}
        for piece in pieces:
            entry.update((name, value) for name, value in piece.items() if value is not None)
        for name in ("text", "summary"):
            if name in entry:
                entry[name] = "".join(text for piece in pieces if isinstance(text := piece.get(name), str))
        joined.append(entry)
    return joined
