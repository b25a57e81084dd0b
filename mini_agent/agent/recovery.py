"""What the loop can do about an error that takes another request (product R6, R9): decided here, done by `asking`.

Each measure has its end: within one request the key is read once more, results are shortened once and the history is
compacted once, and a thing that a provider refuses is left out from then on.
"""

from typing import Literal, NamedTuple

from mini_agent.core import estimates
from mini_agent.core.errors import ModelError, ProviderError
from mini_agent.core.messages import Message, Request, Response

Kind = Literal["leave_out", "read_key", "shorten", "compact"]

MOST_LEFT_OUT = 4
"""Things that one request may find refused, one after the other; more is a provider that refuses the request."""

ROOM = 0.6
"""The share of a window that a conversation may take after it was made to fit: the answer and the next steps need some."""

NEAR = 0.85
"""From this share of the window on the user is told."""

FULL = 0.9
"""An answer without a word to an estimate of this share is taken for an overflow that was not said."""


class Measure(NamedTuple):
    """One thing to do before the request is made again. what: what to leave out."""

    kind: Kind
    what: str = ""


class Recovery:
    """The measures that are left for one request, and what the provider is known to refuse.

    window: the model's context window in tokens, None where it is not known. without: what the provider refuses.
    """

    def __init__(self) -> None:
        self.window: int | None = None
        self._taken: set[Kind] = set()
        self._left_out = 0
        self._warned = False
        self.without: frozenset[str] = frozenset()

    def begin(self) -> None:
        """A new request."""
        self._taken.clear()
        self._left_out = 0

    def refuses(self, what: str) -> None:
        """The provider takes no `what`, now and later."""
        self.without |= {what}

    def measure(
        self, error: ModelError, messages: tuple[Message, ...], *, makes_room: bool = True
    ) -> Measure | None:
        """What to do about `error` that was not done before; None where nothing is left.

        makes_room: whether the history may be made shorter for it.
        """
        refused = error.refused
        if (
            refused is not None
            and refused not in ("images", *self.without)
            and self._left_out < MOST_LEFT_OUT
        ):
            self._left_out += 1
            return Measure("leave_out", refused)
        if error.kind == "auth":
            return self._once("read_key")
        if makes_room and (
            error.kind in ("context_overflow", "too_large") or self._is_silent(error, messages)
        ):
            return self._once("shorten") or self._once("compact")
        return None

    def _once(self, kind: Kind) -> Measure | None:
        if kind in self._taken:
            return None
        self._taken.add(kind)
        return Measure(kind)

    def _is_silent(self, error: ModelError, messages: tuple[Message, ...]) -> bool:
        """Whether an empty answer is how this server says that the request was too long (LM Studio does)."""
        return (
            error.kind == "empty"
            and self.window is not None
            and estimates.tokens(messages) >= FULL * self.window
        )

    def overflow(self, response: Response, messages: tuple[Message, ...]) -> ModelError | None:
        """The overflow that an answer shows without an error; None where there is none, or nothing is left to do about it.

        A window that was reached while the answer was written, a prompt that fills it, an answer cut before its first
        token though the prompt is large: some servers cut the prompt and say nothing.
        """
        if "compact" in self._taken or len(messages) < 2:
            return None
        asked = response.usage.input_tokens
        unsaid = (
            response.stop_reason == "max_tokens"
            and not response.blocks
            and response.usage.output_tokens == 0
            and (self.window is None or estimates.tokens(messages) >= self.window / 2)
        )
        full = self.window is not None and asked is not None and asked >= self.window
        if not (unsaid or full or response.stop_reason == "context_overflow"):
            return None
        return ProviderError(
            "the conversation no longer fits the model's context window",
            kind="context_overflow",
            retryable=False,
            code=response.raw_stop_reason,
            asked_tokens=asked,
            limit_tokens=self.window,
        )

    def warning(self, response: Response, request: Request) -> str | None:
        """What the user is told when the window is nearly full: once, until there is room again.

        By what the provider counted; where it counts nothing, by our own estimate.
        """
        if self.window is None:
            return None
        asked = response.usage.input_tokens
        about = "" if asked is not None else "about "
        asked = estimates.request(request) if asked is None else asked
        near = asked >= NEAR * self.window
        said, self._warned = self._warned, near
        if said or not near:
            return None
        share = f"{about}{asked / self.window:.0%}"
        return f"the conversation fills {share} of the model's context window ({self.window:,} tokens)"

    def target(self, error: ModelError, messages: tuple[Message, ...]) -> int:
        """Tokens, by our estimate, that the conversation should come down to."""
        now = estimates.tokens(messages)
        limit = error.limit_tokens or self.window
        if limit is None:
            return now // 2
        scale = now / error.asked_tokens if error.asked_tokens else 1.0
        # Where the numbers do not agree with ours, it is still made smaller: the provider said no.
        return min(int(limit * ROOM * scale), int(now * 0.8))
