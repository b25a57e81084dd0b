"""What a turn cost, on one line (product U6), and what a session did."""

from mini_agent.core.events import (
    AgentEvent,
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    Failed,
    FirstToken,
    StreamStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from mini_agent.core.messages import Usage
from mini_agent.core.pricing import cost
from mini_agent.core.profile import Price
from mini_agent.core.status import Status

_SIGNS = {"USD": "$", "CNY": "¥", "EUR": "€"}


class Receipt:
    """Adds up one turn's events. What nobody reported is left out; an estimate is marked with `~`.

    The times are those the user saw, from the message to the first token that stayed and to the end, without the time in
    which the program waited for the user's own answers. With streaming off both are the same. price: the model's; without
    one, a cost is shown where the turn says it.
    """

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._began: float | None = None
        self._first: float | None = None
        self._ended: float | None = None
        self._asked_once = self._answered_once = False
        self._asked: float | None = None
        self._asking_s = 0.0
        self._tools: dict[str, float] = {}
        self._tools_s = 0.0
        self._usage = Usage()
        self._streaming_s = 0.0
        self._timed_tokens = 0
        self._failed = 0
        self._wasted = 0
        self._estimated = self._waste_estimated = False
        self._cost: float | None = None
        self._wasted_cost = 0.0

    def feed(self, event: AgentEvent) -> None:
        match event:
            case TurnStarted():
                self._began = event.t
            case StreamStarted():
                self._asked_once = True
                if not self._answered_once:
                    self._first = None  # an attempt before it has said nothing that counts
            case FirstToken() if self._first is None:
                self._first = event.t - self._asking_s
            case Failed() if not self._answered_once:
                self._first = None
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
                self._cost = event.cost_usd if self._price is None else self._cost
            case _:
                pass

    def _answered(self, t: float) -> None:
        if self._asked is not None:
            self._asking_s += t - self._asked
            self._asked = None

    def _attempt(self, event: AttemptEnded) -> None:
        tokens = event.usage.output_tokens or 0
        spent = None if self._price is None else cost(event.usage, self._price, event.t)
        if event.outcome == "failed":
            self._failed += 1
            self._waste_estimated = self._waste_estimated or event.estimated
            self._wasted += tokens
            self._wasted_cost += spent or 0.0
        else:
            if spent is not None:
                self._cost = (self._cost or 0.0) + spent
            self._usage += event.usage
            self._estimated = self._estimated or event.estimated
            self._answered_once = True
            if event.first_token_s is not None:
                streaming_s = event.total_s - event.first_token_s
                # An answer that came in one piece was made in the time before it.
                self._streaming_s += streaming_s if streaming_s > event.total_s / 20 else event.total_s
                self._timed_tokens += tokens

    def line(self) -> str:
        """The receipt; "" where nothing was asked."""
        if not self._asked_once or self._began is None or self._ended is None:
            return ""
        about = "~" if self._estimated else ""
        usage = self._usage
        parts: list[str] = []
        if self._first is not None:
            parts.append(f"first token {_seconds(self._first - self._began)}")
        parts.append(f"total {_seconds(self._ended - self._began - self._asking_s)}")
        if self._timed_tokens and self._timed_tokens >= self._streaming_s > 0:
            parts.append(f"{about}{self._timed_tokens / self._streaming_s:.0f} tok/s")
        if usage.input_tokens is not None:
            cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
            parts.append(f"in {usage.input_tokens}{cached}")
        if usage.output_tokens is not None:
            parts.append(f"out {about}{usage.output_tokens}")
        if self._cost is not None:
            parts.append(_money(self._cost, self._price))
        if self._failed:
            about = "~" if self._waste_estimated else ""
            wasted = f", {about}{self._wasted} tokens wasted" if self._wasted else ""
            wasted += f" ({_money(self._wasted_cost, self._price)})" if self._wasted_cost else ""
            parts.append(f"{self._failed} failed attempt{'s' * (self._failed > 1)}{wasted}")
        if self._tools_s >= 0.05:
            parts.append(f"tools {_seconds(self._tools_s)}")
        return " · ".join(parts)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def _money(amount: float, price: Price | None) -> str:
    currency = "USD" if price is None else price.currency
    sign = _SIGNS.get(currency)
    return f"{sign}{amount:.4f}" if sign else f"{amount:.4f} {currency}"


def cost_lines(status: Status) -> list[str]:
    """What a session took so far, a line each; what is not known is said to be."""
    usage = status.usage
    if usage == Usage():
        tokens = "none were counted yet"
    else:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        tokens = f"in {usage.input_tokens or 0:,}{cached}, out {usage.output_tokens or 0:,}"
    if status.cost is not None:
        money = _money(status.cost, status.price)
    else:
        money = "nothing yet" if status.price else f"not known: no price is known of {status.model}"
    return [f"tokens:  {tokens}", f"cost:    {money}", f"context: {context(status) or 'not known'}"]


def context(status: Status) -> str:
    """How much of the model's window the conversation takes; "" where that is not known."""
    if status.context_tokens is None:
        return ""
    if status.window is None:
        return f"{status.context_tokens:,} tokens"
    return (
        f"{status.context_tokens:,} of {status.window:,} tokens ({status.context_tokens / status.window:.0%})"
    )


def bottom_line(status: Status) -> str:
    """Model, mode, context and cost, as short as it goes."""
    parts = [status.model, status.mode]
    if status.effort is not None:
        parts.append(f"effort {status.effort}")
    if status.context_tokens is not None and status.window is not None:
        parts.append(f"context {status.context_tokens / status.window:.0%}")
    if status.cost is not None:
        parts.append(_money(status.cost, status.price))
    return " · ".join(parts)
