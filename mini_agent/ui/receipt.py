"""What a turn cost, on one line (product U6)."""

from mini_agent.core.events import (
    AgentEvent,
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    FirstToken,
    StreamStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from mini_agent.core.messages import Usage


class Receipt:
    """Adds up one turn's events. What nobody reported is left out; an estimate is marked with `~`.

    The times are those the user saw, from the message to the first token that stayed and to the end, without the time in
    which the program waited for the user's own answers. With streaming off both are the same.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._first: float | None = None
        self._ended: float | None = None
        self._requests: set[str] = set()
        self._asked: float | None = None
        self._asking_s = 0.0
        self._tools: dict[str, float] = {}
        self._tools_s = 0.0
        self._usage = Usage()
        self._streaming_s = 0.0
        self._timed_tokens = 0
        self._failed = 0
        self._wasted = 0
        self._estimated = False
        self._cost: float | None = None

    def feed(self, event: AgentEvent) -> None:
        match event:
            case TurnStarted():
                self._began = event.t
            case StreamStarted():
                self._requests.add(event.request_id)
                if len(self._requests) == 1:
                    self._first = None  # an attempt before it has said nothing that counts
            case FirstToken() if len(self._requests) == 1 and self._first is None:
                self._first = event.t - self._asking_s
            case AttemptEnded():
                self._attempt(event)
            case ApprovalAsked():
                self._asked = event.t
            case ApprovalGiven():
                self._answered(event.t)
            case ToolStarted():
                self._tools[event.call_id] = event.t
            case ToolFinished():
                self._tools_s += event.t - self._tools.pop(event.call_id, event.t)
            case TurnFinished():
                self._answered(event.t)
                self._ended = event.t
                self._cost = event.cost_usd
            case _:
                pass

    def _answered(self, t: float) -> None:
        if self._asked is not None:
            self._asking_s += t - self._asked
            self._asked = None

    def _attempt(self, event: AttemptEnded) -> None:
        tokens = event.usage.output_tokens or 0
        if event.outcome == "failed":
            self._failed += 1
            self._wasted += tokens
        else:
            self._usage += event.usage
            if event.first_token_s is not None:
                spent = event.total_s - event.first_token_s
                # An answer that came in one piece was made in the time before it.
                self._streaming_s += spent if spent > event.total_s / 20 else event.total_s
                self._timed_tokens += tokens
        self._estimated = self._estimated or event.estimated

    def line(self) -> str:
        """The receipt; "" where nothing was asked."""
        if not self._requests or self._began is None or self._ended is None:
            return ""
        about = "~" if self._estimated else ""
        usage = self._usage
        parts: list[str] = []
        if self._first is not None:
            parts.append(f"first token {_seconds(self._first - self._began)}")
        parts.append(f"total {_seconds(self._ended - self._began - self._asking_s)}")
        if self._timed_tokens and self._streaming_s > 0:
            parts.append(f"{about}{self._timed_tokens / self._streaming_s:.0f} tok/s")
        if usage.input_tokens is not None:
            cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
            parts.append(f"in {usage.input_tokens}{cached}")
        if usage.output_tokens is not None:
            parts.append(f"out {about}{usage.output_tokens}")
        if self._cost is not None:
            parts.append(f"${self._cost:.4f}")
        if self._failed:
            wasted = f", {about}{self._wasted} tokens wasted" if self._wasted else ""
            parts.append(f"{self._failed} failed attempt{'s' * (self._failed > 1)}{wasted}")
        if self._tools_s >= 0.05:
            parts.append(f"tools {_seconds(self._tools_s)}")
        return " · ".join(parts)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
