"""What the adapters of all families have in common on the way in: end marks, errors inside a success, broken events.

An adapter is a `Decoder` that reads one family's payloads into an `Assembler`; no I/O. What is missing, null, unknown or
of another type is skipped, and only what could make an answer silently shorter is an error.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from mini_agent.core.errors import CutError, ErrorKind, ModelError, ProtocolError, ProviderError
from mini_agent.core.events import Notice, StreamEvent
from mini_agent.core.messages import Response, StopReason, Usage
from mini_agent.core.profile import Profile
from mini_agent.core.surrogates import join_surrogates
from mini_agent.wire.assembly import Assembler, Order, Origin
from mini_agent.wire.failures import failure_inside
from mini_agent.wire.framing import ServerSentEvent
from mini_agent.wire.loading import encodable, loads

SIGNS_OF_LIFE = frozenset({"ping", "heartbeat", "keepalive", "keep-alive"})
_COUNT_LIMIT = 2**53

STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "completed": "end_turn",
    "tool_calls": "tool_use",
    "tool_use": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "prohibited_content": "content_filter",
    "blocklist": "content_filter",
    "recitation": "content_filter",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_length": "context_overflow",
    "model_context_window_exceeded": "context_overflow",
}
"""What finish reasons mean. One table, because gateways between two families let the words of the other one through."""


class Decoder(ABC):
    """One attempt's answer, from its server-sent events or from its one document.

    Give it every event; stop at `ended` or at `failure`. `close` gives the answer, or raises what is wrong with it.
    asked: the body of the request, which an error inside a success may be about.
    A subclass reads payloads and sets `_finish_reason`, `_id`, `_model`, `_refused` and, for what is whole without a finish
    reason, `_whole`.
    """

    WHAT: ClassVar[str]
    """What the family calls an answer, for messages."""

    ORDER: ClassVar[Order] = "appearance"

    BROKEN_OFF: ClassVar[dict[str, ErrorKind]] = {
        "insufficient_system_resource": "overloaded",
        "error": "provider",
        "abort": "provider",
        "timeout": "provider",
        "malformed_function_call": "provider",
        "network_error": "provider",
    }
    """Finish reasons by which a provider says that it broke the answer off: nothing of it is complete."""

    def __init__(self, profile: Profile, origin: Origin, asked: Mapping[str, Any] | None = None) -> None:
        self._asked = asked
        self._end_marks = {form.upper() for mark in profile.end_marks for form in (mark, f'"{mark}"')}
        self._end_events = profile.end_events
        self._end_when = [(path.split("."), value) for path, value in profile.end_when.items()]
        self._mark_size = max(map(len, self._end_marks), default=0)
        self._assembler = Assembler(origin, self.ORDER)
        self._ended = False
        self._failure: ModelError | None = None
        self._events = 0
        self._recognised = False
        self._stray: str | None = None
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
            self._end()
            return self._assembler.take()
        if event.event != "message":
            if event.event == "error":
                raise failure_inside(_loaded(data), self._asked)
            if event.event in self._end_events:
                return self._decode_last(event)
            if event.event in SIGNS_OF_LIFE and not _holds_more(data):
                return []
        if not stripped:
            return []
        try:
            payload = loads(data)
        except ValueError as error:
            return self._undecodable(data, n, t, error)
        self._take_in(payload, event)
        return self._assembler.take()

    def _decode_last(self, event: ServerSentEvent) -> list[StreamEvent]:
        """An event whose name ends the stream: it may hold a last payload, or anything."""
        with suppress(ValueError):
            self._take_in(loads(event.data), event)
        self._end()
        return self._assembler.take()

    def _take_in(self, payload: object, event: ServerSentEvent) -> None:
        for one in payload if isinstance(payload, list) else (payload,):  # some put their errors into a list
            if isinstance(one, dict):
                self._check(one)
                before, self._recognised = self._recognised, False
                self._payload(one, event.event)
                if not (self._recognised or self.finished) and _reports_failure(one):
                    raise failure_inside(encodable(one), self._asked)
                self._recognised = self._recognised or before
                if not self._recognised and not self._stray and string(one.get("type")) not in SIGNS_OF_LIFE:
                    self._stray = event.data
                if self._end_when and any(at(one, path) == value for path, value in self._end_when):
                    self._end()
        if self.finished:
            self._let_go()  # of what came behind the finish reason, too

    def close(self) -> Response:
        """The answer. Raises CutError where it ended before its end, ProtocolError where it was none, ProviderError."""
        if self._failure is not None:
            raise self._failure
        if not (self._ended or self.finished) or (self._stray is not None and not self._recognised):
            raise self._cut()
        reason = self._finish_reason
        if reason is not None and (kind := self.BROKEN_OFF.get(bare(reason))):
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

    @abstractmethod
    def _payload(self, payload: dict[str, Any], name: str) -> None:
        """One decoded event, and its name in the stream. Sets `_recognised` where it is of this family."""

    def _stop_reason(self) -> StopReason:
        """Why the answer ended. What the calls say counts more than the provider's word, which is wrong often enough."""
        reason = STOP_REASONS.get(bare(self._finish_reason or "stop"), "other")
        if self._assembler.has_calls:
            return "tool_use" if reason in ("end_turn", "other") else reason
        if self._refused and reason == "end_turn":
            return "refusal"
        return "end_turn" if reason == "tool_use" else reason

    def _check(self, payload: dict[str, Any]) -> None:
        """Raises the error that a payload holds, in whatever family."""
        if payload.get("error") or "error" in (payload.get("type"), payload.get("object")):
            raise failure_inside(encodable(payload), self._asked)

    def _let_go(self) -> None:
        """Nothing that could complete a held back piece is likely to come."""
        self._assembler.end()

    def _end(self) -> None:
        """The stream said that it is over."""
        self._ended = True
        self._let_go()

    def _count(self, **counts: object) -> None:
        """Numbers of the usage. The last one wins, field by field: some report often, and not always all of it."""
        self._usage.update(
            (name, value) for name, given in counts.items() if (value := count(given)) is not None
        )

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
                f"what came is JSON, but no {self.WHAT}",
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


def string(value: object) -> str:
    """A string that can be encoded; "" for anything else."""
    return join_surrogates(value) if isinstance(value, str) else ""


def mapping(value: object) -> dict[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def count(value: object) -> int | None:
    """A number of tokens; None for anything else."""
    return value if type(value) is int and 0 <= value < _COUNT_LIMIT else None


def at(payload: object, path: list[str]) -> object:
    """What lies at the end of a path of names and places, None where it breaks off."""
    for name in path:
        if isinstance(payload, dict):
            payload = payload.get(name)
        elif isinstance(payload, list) and name.isdigit() and int(name) < len(payload):
            payload = payload[int(name)]
        else:
            return None
    return payload


def bare(reason: str) -> str:
    """A finish reason to look up; some write it in capitals, some say more behind a colon."""
    return reason.partition(":")[0].strip().lower()


def _reports_failure(payload: dict[str, Any]) -> bool:
    """Whether a payload of no family is an error in one of the shapes that have no `error` in them.

    Skipped like other unknown events, it would leave a shorter answer that seems whole.
    """
    if "type" in payload or "object" in payload:
        return False
    if code := mapping(payload.get("base_resp")).get("status_code"):
        return bool(code)
    if payload.get("detail") or payload.get("errors"):
        return True
    # A `message` that is an object is an answer of some other protocol.
    return any(isinstance(payload.get(key), str) and payload[key] for key in ("message", "msg", "error_msg"))


def _holds_more(data: str) -> bool:
    """Whether an event that is named as a sign of life says by its type that it is something else."""
    kind = string(mapping(_loaded(data)).get("type"))
    return bool(kind) and kind not in SIGNS_OF_LIFE


def _loaded(data: str) -> Any:
    """The value of an event, or its text where it is no JSON."""
    try:
        return encodable(loads(data))
    except ValueError:
        return data
