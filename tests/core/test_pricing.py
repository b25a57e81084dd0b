"""What tokens cost."""

from datetime import UTC, datetime

import pytest

from mini_agent.core.messages import Usage
from mini_agent.core.pricing import cost
from mini_agent.core.profile import Peak, Price

PRICE = Price(input=2, output=10, cached=0.5, cache_write=4)
M = 1_000_000


@pytest.mark.parametrize(
    ("usage", "price", "expected"),
    [
        (Usage(M, M), PRICE, 12),
        (Usage(M, 0, cached_tokens=M), PRICE, 0.5),
        (Usage(M, 0, cached_tokens=M // 2, cache_write_tokens=M // 4), PRICE, 0.25 + 1 + 0.5),
        (Usage(M, 0, cached_tokens=M), Price(input=2, output=10), 2),
        (Usage(0, 0), PRICE, 0),
        (Usage(10, 0, cached_tokens=M), PRICE, 0.5),
        (Usage(M, None), PRICE, None),
        (Usage(None, M), PRICE, None),
    ],
)
def test_each_kind_of_token_has_its_price(usage, price, expected):
    assert cost(usage, price, 0) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("there", "factor"),
    [
        (datetime(2026, 11, 30, 1, 0, tzinfo=UTC), 2),  # Monday, 9 o'clock in Beijing
        (datetime(2026, 11, 30, 3, 59, tzinfo=UTC), 2),
        (datetime(2026, 11, 30, 4, 0, tzinfo=UTC), 1),
        (datetime(2026, 11, 29, 17, 30, tzinfo=UTC), 1),  # Monday already, but at night
        (datetime(2026, 11, 28, 2, 0, tzinfo=UTC), 1),  # Saturday
    ],
)
def test_peak_hours_are_those_of_the_vendors_clock(there, factor):
    price = Price(input=1, output=1, peak=Peak(factor=2, hours=((9, 12), (14, 18)), utc_offset_h=8))
    assert cost(Usage(M, 0), price, there.timestamp()) == pytest.approx(factor)
