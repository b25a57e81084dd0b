"""What a command prints, cleaned and bounded: the same for any split of the bytes."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent_tools.output import HEAD, TAIL, Cleaner, Live, Printed


def cleaned(data: bytes, cuts: list[int] | None = None) -> str:
    cleaner = Cleaner()
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or [])})
    return "".join(cleaner.feed(data[start:stop]) for start, stop in pairwise(edges)) + cleaner.feed(
        b"", last=True
    )


def printed(*texts: str) -> str:
    kept = Printed()
    for text in texts:
        kept.feed(text)
    return kept.text()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        ("caf\xe9 \U0001f600".encode(), "caf\xe9 \U0001f600"),
        (b"\xf0\x28\x00ok\n", "\ufffd(ok\n"),
        (b"half \xe2\x82", "half \ufffd"),
        (b"a\0b\x01\x08\x7f", "ab"),
        (b"dos\r\nlines\r\n", "dos\nlines\n"),
        (b"10%\r20%", "10%\r20%"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b[38;5;196;1mred\x1b[K\x1b[2J\x1b[?25l", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0\x1b\\after \x1b_app\x1b\\x", "after x"),
        (b"\x1b(Bset\x1b7\x1b8\x1b=\x1b>\x1bMx", "setx"),
        (b"\x1b", ""),
        (b"open \x1b[31", "open [31"),
        (b"open \x1b]0;never closed", "open ]0;never closed"),
        (b"bell\x07", "bell"),
        (b"a\r\x1b[K\nb", "a\nb"),
        (b"\x1b\x1b[31mx", "x"),
    ],
)
def test_g14_codes_and_broken_bytes_are_cleaned(data: bytes, text: str) -> None:
    assert cleaned(data) == text
    assert cleaned(data, list(range(len(data)))) == text


PIECES = st.sampled_from(
    b"a|\n|\r|\0|\x07|\x1b|\x1b[|31;1|m|]0;|\\|\x1b\\|(|P|\xe2|\x82|\xac|\xff| |\xf0\x9f\x98\x80".split(b"|")
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=25).map(b"".join), st.lists(st.integers(0, 100)))
def test_g14_any_split_gives_the_same_text(data: bytes, cuts: list[int]) -> None:
    text = cleaned(data)
    assert cleaned(data, cuts) == text
    assert not set(text) & {"\0", "\x07", "\x1b"}


@settings(deadline=None)
@given(st.binary())
def test_g14_any_bytes_become_text_that_can_be_sent(data: bytes) -> None:
    cleaned(data).encode()


def test_g14_an_endless_sequence_is_not_waited_for() -> None:
    cleaner = Cleaner()
    cleaner.feed(b"\x1b]0;")
    assert sum(len(cleaner.feed(b"x" * 100)) for _ in range(100)) > 5000


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (["10%\r20%\r100%\n"], "100%\n"),
        (["10%", "\r20%", "\r100%", "\ndone"], "100%\ndone"),
        (["a\nb\rc\nd"], "a\nc\nd"),
        (["working...\r"], "working..."),
        (["one\rtwo"], "two"),
        (["x\r\ny"], "x\ny"),
        ([], ""),
    ],
)
def test_g14_a_line_printed_over_counts_as_its_last_state(texts: list[str], text: str) -> None:
    assert printed(*texts) == text


def test_what_fits_is_kept_whole() -> None:
    text = "".join(f"{number}\n" for number in range(5000))
    assert len(text) < HEAD + TAIL
    assert printed(text) == printed(*text) == text


@pytest.mark.parametrize("character", ["x", "\xe9", "\u20ac", "\U0001f600"])
@pytest.mark.parametrize("extra", range(5))
def test_g13_beginning_and_end_are_kept_and_the_rest_is_counted(character: str, extra: int) -> None:
    text = "b" * extra + character * 100_000 + "e" * extra
    kept = printed(*(text[start : start + 997] for start in range(0, len(text), 997)))
    head, note, tail = kept.partition("\n[")
    count, _, tail = tail.partition(" bytes left out here]\n")
    assert note
    assert text.startswith(head)
    assert text.endswith(tail)
    assert int(count.replace(",", "")) == len(text.encode()) - len(head.encode()) - len(tail.encode())
    assert HEAD - 4 < len(head.encode()) <= HEAD
    assert TAIL - 4 < len(tail.encode()) <= TAIL


@settings(deadline=None)
@given(st.lists(st.text("ab\n\u20ac", max_size=5), max_size=30), st.integers(1, 20))
def test_g13_nothing_but_the_middle_is_lost(texts: list[str], times: int) -> None:
    text = "".join(texts) * times
    assert printed(*texts * times) == text


def test_g13_memory_does_not_grow_with_the_output() -> None:
    cleaner, kept = Cleaner(), Printed()
    many, long = b"y\n" * 32_000, b"x" * 64_000
    tracemalloc.start()
    try:
        for piece in [many] * 200 + [long] * 200 + [b"10%\r" * 16_000] * 200:
            kept.feed(cleaner.feed(piece))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


class Screen:
    def __init__(self) -> None:
        self.pieces: list[str] = []

    async def __call__(self, text: str) -> None:
        self.pieces.append(text)


async def test_live_output_begins_at_once_and_then_keeps_to_frames() -> None:
    screen = Screen()
    live = Live(screen)
    assert live.due == float("inf")
    await live.feed("one", 100.0)
    assert screen.pieces == ["one"]
    await live.feed("two", 100.01)
    await live.feed(" three", 100.02)
    assert screen.pieces == ["one"]
    assert live.due == pytest.approx(100.05)
    await live.feed("", live.due)
    assert screen.pieces == ["one", "two three"]
    await live.feed("end", 100.06, last=True)
    await live.feed("", 100.06, last=True)
    assert screen.pieces == ["one", "two three", "end"]


async def test_g13_a_flood_is_not_shown_whole_and_that_is_said() -> None:
    screen = Screen()
    live = Live(screen)
    for step in range(1000):  # 100 MB in 10 s
        await live.feed("y" * 100_000, step / 100)
    await live.feed("", 10.0, last=True)
    shown = "".join(screen.pieces)
    assert shown.count("y") < 16_000 * 13
    assert len(screen.pieces) <= 201
    said = [int(line.split()[0][1:].replace(",", "")) for line in shown.splitlines() if line.startswith("[")]
    assert shown.count("y") + sum(said) == 100_000_000


async def test_a_burst_is_shown_whole() -> None:
    screen = Screen()
    await Live(screen).feed("x" * 16_000, 0.0)
    assert screen.pieces == ["x" * 16_000]


async def test_g14_live_carriage_returns_are_line_ends() -> None:
    screen = Screen()
    await Live(screen).feed("10%\r20%\n", 0.0)
    assert screen.pieces == ["10%\n20%\n"]
