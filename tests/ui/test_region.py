"""The live region, read through a terminal emulator."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from stage import Terminal

from mini_agent.ui.region import Lines, Region
from mini_agent.ui.text import SGR, cells

rows = st.lists(
    st.sampled_from(
        [
            "",
            "a",
            "row",
            "row two",
            "\x1b[2mdim\x1b[0m",
            "\x1b[2mdim\x1b[0m and",
            "\x1b[1;2mdim\x1b[0m",
            "漢字",
            "漢字 x",
            "x" * 19,
        ]
    ),
    max_size=9,
)


def plain(lines: list[str]) -> list[str]:
    return [SGR.sub("", line) for line in lines]


@st.composite
def plays(draw: st.DrawFn) -> list[tuple[str, object]]:
    kinds = st.sampled_from(["commit", "frame", "frame", "settle", "mark", "erase"])
    return [
        (kind, draw(rows) if kind == "frame" else draw(st.integers(0, 14)) if kind == "commit" else None)
        for kind in draw(st.lists(kinds, max_size=30))
    ]


@settings(max_examples=300, deadline=None)
@given(plays(), st.integers(0, 12), st.integers(2, 9))
def test_each_committed_row_stands_once_and_the_region_under_it(
    play: list[tuple[str, object]], above: int, height: int
) -> None:
    terminal = Terminal(20, height)
    before = [f"before {number}" for number in range(above)]
    terminal.feed("".join(f"{line}\r\n" for line in before))
    region = Region(20, height)
    names = numbers()
    committed: list[str] = []
    shown: list[str] = []
    mark, marked = region.mark(), 0
    terminal.feed(region.open())
    for kind, what in play:
        match kind:
            case "commit":
                new = [next(names) for _ in range(what)]
                region.commit(new)
                committed += new
            case "settle":  # the top of the region is final as it stands
                region.commit(shown[:2])
                committed += plain(shown[:2])
                shown = shown[2:]
                terminal.feed(region.frame(shown))
                visible = plain(shown[-(height - 1) :] if height > 1 else [])
                assert strip(terminal.lines) == strip([*before, *broken(committed), *visible])
            case "mark":
                mark, marked = region.mark(), len(committed)
            case "erase":
                if region.erase_since(mark):
                    del committed[marked:]
                    terminal.feed(region.frame(shown))
                else:
                    mark, marked = region.mark(), len(committed)
            case _:
                shown = what
                terminal.feed(region.frame(shown))
                visible = plain(shown[-(height - 1) :] if height > 1 else [])
                assert strip(terminal.lines) == strip([*before, *broken(committed), *visible])
                assert terminal.cursor_hidden
    terminal.feed(region.close())
    assert strip(terminal.lines) == strip([*before, *broken(committed)])
    assert not terminal.cursor_hidden


def numbers() -> Iterator[str]:
    number = 0
    while True:
        number += 1
        name = f"line {number}"
        # Some rows are wider than the screen. (Of wide characters from an even column on: pyte cuts one in two elsewhere.)
        wide = " " * (len(name) % 2) + "漢" * 17
        yield name + ("", "", "-" * 25, "=" * (40 - len(name)), wide)[number % 5]


def broken(lines: list[str]) -> list[str]:
    """Rows as the terminal breaks them."""
    return [part for line in lines for part in _broken(line)]


def _broken(line: str) -> list[str]:
    parts = [""]
    for char in line:
        if cells(parts[-1] + char) > 20:
            parts.append("")
        parts[-1] += char
    return parts


def strip(lines: list[str]) -> list[str]:
    lines = list(lines)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def test_what_is_on_the_screen_can_be_erased_and_what_has_left_it_can_not() -> None:
    terminal, region = Terminal(20, 10), Region(20, 10)
    mark = region.mark()
    region.commit([f"line {number}" for number in range(9)])
    terminal.feed(region.frame(["status"]))
    assert region.erase_since(mark)
    frame = region.frame(["status"])
    assert "\x1b[J" not in frame  # row by row: ED may push what it clears into the scrollback
    terminal.feed(frame)
    assert terminal.lines == ["status"]
    region.commit([f"line {number}" for number in range(10)])
    terminal.feed(region.frame(["status"]))
    assert not region.erase_since(mark)


def test_f04_after_a_resize_nothing_committed_is_erased() -> None:
    terminal, region = Terminal(20, 10), Region(20, 10)
    mark = region.mark()
    region.commit(["kept"])
    terminal.feed(region.frame(["status", "more"]))
    region.resize(10, 10)
    assert not region.erase_since(mark)
    terminal.screen.resize(10, 10)
    terminal.feed(region.frame(["status"]))
    assert terminal.lines == ["kept", "status"]


def test_f04_a_resize_that_nobody_told_of_leaves_committed_rows_alone() -> None:
    terminal, region = Terminal(20, 10), Region(20, 10)
    region.commit(["kept one", "kept two"])
    terminal.feed(region.frame(["a region row 19 col", "status status statu"]))
    terminal.screen.resize(10, 12)
    for number in range(5):
        region.commit([f"new {number}"])
        terminal.feed(region.frame(["another row as wide", f"status {number} status"]))
    region.resize(12, 10)
    terminal.feed(region.frame(["status"]))
    assert terminal.lines == ["kept one", "kept two", *(f"new {number}" for number in range(5)), "status"]


def test_a_row_that_only_grew_gets_only_its_new_end() -> None:
    terminal, region = Terminal(), Region(80, 24)
    terminal.feed(region.frame(["first", "hello"]))
    frame = region.frame(["first", "hello world"])
    assert "hello" not in frame
    assert " world" in frame
    terminal.feed(frame)
    assert terminal.lines == ["first", "hello world"]


def test_an_unchanged_frame_writes_nothing() -> None:
    region = Region(80, 24)
    region.frame(["a", "b"])
    assert region.frame(["a", "b"]) == ""


def test_a_frame_is_one_synchronized_piece() -> None:
    frame = Region(80, 24).frame(["a"])
    assert frame.startswith("\x1b[?2026h")
    assert frame.endswith("\x1b[?2026l")


def test_only_what_is_committed_is_wrapped_by_the_terminal_and_wrapping_is_on_in_the_end() -> None:
    region = Region(80, 24)
    assert region.open().endswith("\x1b[?7l")
    region.commit(["final"])
    frame = region.frame(["a"])
    assert frame.index("\x1b[?7h") < frame.index("final") < frame.index("\x1b[?7l") < frame.index("a\r")
    assert region.close().rindex("\x1b[?7h") > 0


def test_f14_lines_without_cursor_movement() -> None:
    lines = Lines()
    mark = lines.mark()
    lines.commit(["a"])
    assert lines.open() + lines.frame(["status"]) == "a\r\n"
    assert not lines.erase_since(mark)
    lines.commit(["b", "c"])
    mark = lines.mark()
    lines.commit(["d"])
    assert lines.erase_since(mark)  # not written yet
    assert lines.close() == "b\r\nc\r\n"
