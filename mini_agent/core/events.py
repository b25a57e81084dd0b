"""The closed vocabulary: everything above the wire speaks only these events.

A consumer matches with `match` and ends with `assert_never`. One that keeps state drops it at the next `StreamStarted`:
state never outlives its attempt. Every struct is tagged with its name in snake_case as `type`.

Common fields: `t` is unix seconds. `request_id`, `attempt` (from 1) and `n` (the wire event's number within its
attempt, from 1) stand where they apply; where deltas were joined, `n_first` and `n_last` stand for `n`.
"""

import re
from typing import Any, Literal

import msgspec

from mini_agent.core.errors import ErrorInfo
from mini_agent.core.messages import Image, Response, Usage

Channel = Literal["text", "reasoning"]
Phase = Literal["connected", "headers", "streaming", "silent"]
RetryDecision = Literal[
    "backoff", "fresh_connection", "plain", "without_images", "resample", "to_session", "give_up"
]
Outcome = Literal["completed", "failed", "cancelled"]
Level = Literal["info", "warning", "error"]
ApprovalDecision = Literal["allow", "deny"]
TurnReason = Literal["done", "cancelled", "failed", "max_steps", "repetition", "budget", "denied"]


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=_snake):
    """What every event has."""

    t: float


class AttemptEvent(Event, frozen=True, kw_only=True):
    """An event that belongs to one attempt of one request."""

    request_id: str
    attempt: int


class WireEvent(AttemptEvent, frozen=True, kw_only=True):
    """An event decoded from wire event number `n` of its attempt."""

    n: int | None = None


class StreamStarted(AttemptEvent, frozen=True, kw_only=True):
    """An attempt begins; whatever an earlier one had said is void."""

    model: str
    api: str


class FirstToken(WireEvent, frozen=True, kw_only=True):
    """Once per attempt, at its first non-empty piece. ttft_s: seconds since the attempt began."""

    ttft_s: float


class ChannelToken(WireEvent, frozen=True, kw_only=True):
    """A piece of text or reasoning, never empty."""

    channel: Channel
    text: str
    n_first: int | None = None
    n_last: int | None = None


class ToolCallDelta(WireEvent, frozen=True, kw_only=True):
    """A piece of a call. `index` is its place among the calls (from 0); `arguments` is the fragment, not the whole.

    `id` and `name` are what is known so far.
    """

    index: int
    id: str
    name: str
    arguments: str
    n_first: int | None = None
    n_last: int | None = None


class AttemptProgress(AttemptEvent, frozen=True, kw_only=True):
    """A sign of life or of its absence, at most once a second. silent_s: seconds since the last byte."""

    phase: Phase
    bytes: int
    silent_s: float


class Retrying(AttemptEvent, frozen=True, kw_only=True):
    """Said once before each wait. retry: which retry comes, from 1. wait_s: how long it waits first."""

    retry: int
    max_retries: int
    wait_s: float
    decision: RetryDecision
    error: ErrorInfo


class ResponseStarted(WireEvent, frozen=True, kw_only=True):
    response_id: str
    usage: Usage


class ReasoningCompleted(WireEvent, frozen=True, kw_only=True):
    index: int
    signature: str | None


class BackendToolStarted(WireEvent, frozen=True, kw_only=True):
    """The provider runs a tool of its own."""

    id: str
    name: str
    input: Any


class BackendToolCompleted(WireEvent, frozen=True, kw_only=True):
    id: str
    name: str
    output: Any
    is_error: bool


class ImagesStripped(AttemptEvent, frozen=True, kw_only=True):
    count: int
    reason: str


class DoomLoopSignal(AttemptEvent, frozen=True, kw_only=True):
    """A provider or our detector says that the attempt repeated itself."""

    labels: tuple[str, ...]


class AttemptEnded(AttemptEvent, frozen=True, kw_only=True):
    """The measurements of one attempt, also of one given up. Seconds; gaps are between reads of the socket.

    estimated: whether `usage` is an estimate because the provider reported none.
    """

    outcome: Outcome
    connect_s: float | None = None
    first_byte_s: float | None = None
    first_token_s: float | None = None
    total_s: float
    gap_p50_s: float | None = None
    gap_p95_s: float | None = None
    gap_max_s: float | None = None
    events: int = 0
    bytes: int = 0
    event_bytes_p50: int | None = None
    event_bytes_max: int | None = None
    usage: Usage = Usage()
    estimated: bool = False
    error: ErrorInfo | None = None


class Completed(AttemptEvent, frozen=True, kw_only=True):
    """The end of a stream: the whole answer."""

    response: Response


class Failed(Event, frozen=True, kw_only=True):
    """The request got no answer. Said by the loop, once, before `TurnFinished(failed)`."""

    error: ErrorInfo


class TurnStarted(Event, frozen=True, kw_only=True):
    """prompt: "" where a turn goes on. images: sent with it."""

    prompt: str
    images: tuple[Image, ...] = ()


class UserMessage(Event, frozen=True, kw_only=True):
    """A message of the user that entered while the turn ran."""

    text: str
    queued: bool


OWN_CALL = "user-"
"""Begins the id of a call that the user made, not the model."""


class ToolStarted(Event, frozen=True, kw_only=True):
    call_id: str
    name: str
    arguments: dict[str, Any]


class ToolOutput(Event, frozen=True, kw_only=True):
    """Output of a running tool, as it comes."""

    call_id: str
    text: str


class ToolFinished(Event, frozen=True, kw_only=True):
    """content: what the model gets. detail: what the screen may show instead (a diff, say)."""

    call_id: str
    name: str
    is_error: bool
    content: str
    elapsed_s: float
    detail: str | None = None


class ApprovalAsked(Event, frozen=True, kw_only=True):
    call_id: str
    name: str
    summary: str


class ApprovalGiven(Event, frozen=True, kw_only=True):
    """rule: what decided where nobody was asked, or None for the user's own answer."""

    call_id: str
    decision: ApprovalDecision
    rule: str | None = None


class Compacted(Event, frozen=True, kw_only=True):
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int


class Notice(Event, frozen=True, kw_only=True):
    """Something the user should know. parse_error: raw text that could not be decoded."""

    level: Level
    text: str
    parse_error: str | None = None


class TurnFinished(Event, frozen=True, kw_only=True):
    """The end every turn has. text: the last response's text. usage: of all requests, abandoned attempts included."""

    reason: TurnReason
    text: str
    usage: Usage
    cost_usd: float | None = None


StreamEvent = (
    StreamStarted
    | FirstToken
    | ChannelToken
    | ToolCallDelta
    | BackendToolStarted
    | BackendToolCompleted
    | AttemptProgress
    | Retrying
    | ImagesStripped
    | DoomLoopSignal
    | ResponseStarted
    | ReasoningCompleted
    | AttemptEnded
    | Notice
    | Completed
)
"""What a Streamer yields."""

AgentEvent = (
    StreamEvent
    | Failed
    | TurnStarted
    | UserMessage
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | ApprovalAsked
    | ApprovalGiven
    | Compacted
    | TurnFinished
)
"""What the agent yields."""
