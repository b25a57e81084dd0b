"""What tokens cost, by a model's price."""

from datetime import UTC, datetime, timedelta

from mini_agent.core.messages import Usage
from mini_agent.core.profile import Peak, Price


def cost(usage: Usage, price: Price, t: float) -> float | None:
    """What `usage` costs in the price's currency; None where what was read or written is not known.

    t: when it was asked, in unix seconds, for prices that depend on the hour.
    """
    read, written = usage.input_tokens, usage.output_tokens
    if read is None or written is None:
        return None
    cached, kept = usage.cached_tokens or 0, usage.cache_write_tokens or 0
    plain = max(0, read - cached - kept)
    total = (
        plain * price.input
        + cached * _or(price.cached, price.input)
        + kept * _or(price.cache_write, price.input)
        + written * price.output
    )
    factor = price.peak.factor if price.peak is not None and _is_peak(price.peak, t) else 1.0
    return total * factor / 1_000_000


def _or(price: float | None, other: float) -> float:
    """A vendor without a price of its own for something charges what it charges otherwise."""
    return other if price is None else price


def _is_peak(peak: Peak, t: float) -> bool:
    there = datetime.fromtimestamp(t, UTC) + timedelta(hours=peak.utc_offset_h)
    hour = there.hour + there.minute / 60
    return there.isoweekday() in peak.days and any(begin <= hour < end for begin, end in peak.hours)
