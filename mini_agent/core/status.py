"""What a session is set to and what it has come to, as one value for whoever shows it."""

import msgspec

from mini_agent.core.messages import Usage
from mini_agent.core.permission import Mode
from mini_agent.core.profile import Effort, Price


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is set to, and what it has come to.

    context_tokens: what the last request and its answer had, None before the first; of `window`, None where that is not
    known. usage: of all requests. price: of the model. cost: in the price's currency, None where something is not known.
    """

    model: str
    mode: Mode
    effort: Effort | None
    context_tokens: int | None = None
    window: int | None = None
    usage: Usage = Usage()
    price: Price | None = None
    cost: float | None = None
