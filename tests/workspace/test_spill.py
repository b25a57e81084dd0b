"""What is too large: both ends for the model, the whole in a file, and it is said what is missing and where it is."""

import errno
import os
import re
import stat
import time
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.workspace import spill as spilling
from mini_agent.workspace.paths import Workspace
from mini_agent.workspace.spill import KEPT_S, LIMIT, Kept, Spill, cut

DAY = 24 * 3600.0
NOW = time.time()  # files get the time of the system
NOTE = re.compile(
    r"\[([\d,]+) bytes left out here"
    r"(?:; (?:the whole is|the first [\d,]+ bytes are) in (.*), which read_file shows)?\]"
)
TEXTS = st.text(st.sampled_from("ab\n\r\u20ac\xe9\U0001f600 "), max_size=200) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=200
)


@pytest.fixture
def spill(tmp_path: Path) -> Spill:
    return Spill(tmp_path / "spill", "run", now=lambda: NOW)


def files(spill: Spill) -> list[Path]:
    return sorted(spill.folder.parent.glob("*/*"))


def parts(shown: str, whole: str, limit: int) -> tuple[str, int, str, str | None]:
    """Head, bytes left out, tail and path of a text that was cut, all checked against the whole."""
    for note in NOTE.finditer(shown):
        left_out = int(note[1].replace(",", ""))
        tail = shown[note.end() :].removeprefix("\n")
        for head in (shown[: note.start()], shown[: note.start()].removesuffix("\n")):
            if (
                whole.startswith(head)
                and whole.endswith(tail)
                and len(head.encode()) + left_out + len(tail.encode()) == len(whole.encode())
            ):
                assert shown[note.end()] == "\n"
                assert note.start() == 0 or shown[note.start() - 1] == "\n"
                assert len(head.encode()) + len(tail.encode()) <= limit
                return head, left_out, tail, note[2]
    raise AssertionError(f"these are not the ends of it: {shown[:200]!r}")


@settings(deadline=None)
@given(TEXTS, st.integers(1, 30), st.integers(2, 300))
def test_a7_any_text_is_whole_or_both_its_ends_and_the_bytes_between_are_counted(
    text: str, times: int, limit: int
) -> None:
    whole = text * times
    shown = cut(whole, None, limit)
    shown.encode()
    if len(whole.encode()) <= limit:
        assert shown == whole
        return
    head, left_out, tail, path = parts(shown, whole, limit)
    assert left_out > 0
    assert path is None
    # No more is lost than half an end, for whole lines, and the rest of a character.
    assert len(head.encode()) > (limit - limit // 2) // 2 - 4
    assert len(tail.encode()) >= limit // 2 // 2 - 4
    assert len(shown.encode()) <= limit + len(f"\n[{left_out:,} bytes left out here]\n")


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=8), st.integers(1, 40), st.integers(1, 40))
def test_a7_pieces_make_no_difference_and_the_file_has_the_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], most_head: int, most_tail: int
) -> None:
    spill = Spill(tmp_path_factory.mktemp("top"), "run", now=lambda: NOW)
    whole = "".join(pieces)
    shown = []
    for given_pieces in pieces, [whole]:
        with closing(Kept(spill, most_head, most_tail)) as kept:
            for piece in given_pieces:
                kept.feed(piece)
            shown.append(kept.text())
    if len(whole.encode()) <= most_head + most_tail:
        assert shown == [whole, whole]
        assert files(spill) == []
        return
    (*one, path), (*two, other) = (parts(text, whole, most_head + most_tail) for text in shown)
    assert one == two
    assert files(spill) == [Path(str(path)), Path(str(other))]
    assert [file.read_bytes() for file in files(spill)] == [whole.encode()] * 2


def test_a7_ends_are_of_whole_lines_where_lines_are_short(spill: Spill) -> None:
    whole = "".join(f"line {number}\n" for number in range(1000))
    head, _, tail, _ = parts(cut(whole, spill, 1000), whole, 1000)
    assert head.endswith("\n")
    assert tail.startswith("line ")
    assert len(head) > 490
    assert len(tail) > 480
    long = f"a\n{'x' * 2000}\nz\n"
    head, _, tail, _ = parts(cut(long, spill, 1000), long, 1000)
    assert (len(head), len(tail)) == (500, 500)


def test_a7_what_fits_to_the_byte_is_left_alone(spill: Spill) -> None:
    for text in "x" * LIMIT, "\u20ac" * (LIMIT // 3):
        assert cut(text, spill) == text
    assert files(spill) == []
    assert cut("x" * (LIMIT + 1), spill) != "x" * (LIMIT + 1)
    assert len(files(spill)) == 1


@pytest.mark.skipif(os.name == "nt", reason="modes of a POSIX system")
def test_a7_files_are_for_this_user_only(spill: Spill) -> None:
    cut("x" * 100, spill, 10)
    (file,) = files(spill)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a7_nothing_is_made_before_there_is_something_to_keep(spill: Spill) -> None:
    with closing(Kept(spill, 5, 5)) as kept:
        kept.feed("short")
        assert kept.text() == "short"
    assert not spill.folder.parent.exists()


def test_a7_names_are_never_used_twice(spill: Spill) -> None:
    later = Spill(spill.folder.parent, "run", now=lambda: NOW)
    for text in "one" * 10, "two" * 10:
        cut(text, spill, 4)
        cut(text, later, 4)
    assert sorted(file.read_text() for file in files(spill)) == ["one" * 10] * 2 + ["two" * 10] * 2


def test_a7_what_nobody_was_told_of_is_removed(spill: Spill) -> None:
    with closing(Kept(spill, 5, 5)) as kept:
        kept.feed("x" * 100)
        assert len(files(spill)) == 1
    assert files(spill) == []


def test_a7_a_path_is_told_that_holds_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = cut("x" * 100, Spill(Path("spill"), "run", now=lambda: NOW), 10)
    path = Path(str(parts(shown, "x" * 100, 10)[3]))
    assert path.is_absolute()
    assert path.read_text() == "x" * 100


def test_a7_an_endless_output_is_kept_up_to_a_cap_and_that_is_said(
    spill: Spill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spilling, "MOST_KEPT", 1000)
    with closing(Kept(spill, 50, 50)) as kept:
        for number in range(1000):
            kept.feed(f"{number:09}\n")
        shown = kept.text()
    assert "; the first 1,000 bytes are in " in shown
    (file,) = files(spill)
    assert file.read_text() == "".join(f"{number:09}\n" for number in range(100))
    for size in 1000, 1001:
        assert ("the first" in cut("x" * size, spill, 10)) == (size > 1000)


def test_g13_memory_does_not_grow_with_what_is_kept_aside(
    spill: Spill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spilling, "MOST_KEPT", 5_000_000)
    piece = "y\n" * 16_000
    tracemalloc.start()
    try:
        with closing(Kept(spill, 16_000, 16_000)) as kept:
            for _ in range(500):
                kept.feed(piece)
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


# What can't be written.


class Full:
    """A file on a disk that has no room left after some bytes."""

    def __init__(self, real, room: int) -> None:
        self._real = real
        self._room = room

    def write(self, data) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._real.write(data)

    def close(self) -> None:
        self._real.close()


class FullAtTheEnd(Full):
    """What was written is still in a buffer, and its time comes when the file is closed."""

    def close(self) -> None:
        super().close()
        raise OSError(errno.EDQUOT if hasattr(errno, "EDQUOT") else errno.ENOSPC, "over quota")


@pytest.mark.parametrize(
    ("full", "room", "said"),
    [
        (Full, 0, os.strerror(errno.ENOSPC)),
        (Full, 60, os.strerror(errno.ENOSPC)),
        (FullAtTheEnd, 1000, "over quota"),
    ],
)
def test_a7_a_file_that_fills_the_disk_is_removed_and_that_is_said(
    spill: Spill, monkeypatch: pytest.MonkeyPatch, full, room: int, said: str
) -> None:
    create = spill.create
    monkeypatch.setattr(spill, "create", lambda: (lambda path, file: (path, full(file, room)))(*create()))
    with closing(Kept(spill, 10, 10)) as kept:
        for _ in range(10):
            kept.feed("x" * 10)
        shown = kept.text()
    assert shown == f"{'x' * 10}\n[80 bytes left out here; the whole could not be kept: {said}]\n{'x' * 10}"
    assert files(spill) == []


@pytest.mark.parametrize("where", ["root", "folder", "above"])
def test_a7_a_folder_that_can_not_be_made_is_only_said(tmp_path: Path, where: str) -> None:
    root = tmp_path / "state" / "spill"
    place = {"root": root, "folder": root / "run", "above": root.parent}[where]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file")
    shown = cut("x" * 100, Spill(root, "run", now=lambda: NOW), 20)
    assert "80 bytes left out here; the whole could not be kept: " in shown
    assert place.read_text() == "a file"


# What is old.


def put(spill: Spill, run: str, name: str, age_s: float) -> Path:
    file = spill.folder.parent / run / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("old")
    os.utime(file, (NOW - age_s, NOW - age_s))
    return file


def test_a7_old_files_of_any_run_are_removed_when_the_first_is_made(spill: Spill) -> None:
    old = [put(spill, run, "0001.txt", KEPT_S + 1) for run in ("run", "other", "mixed")]
    young = [put(spill, run, "0002.txt", 6 * DAY) for run in ("mixed", "young")]
    other = put(spill, "mixed", "notes.md", 100 * DAY)
    assert all(file.exists() for file in old)
    cut("x" * 100, spill, 10)
    assert not any(file.exists() for file in old)
    assert all(file.exists() for file in [*young, other])
    assert not old[1].parent.exists()
    assert spill.folder.is_dir()


def test_a7_files_are_not_looked_for_again_in_the_same_run(spill: Spill) -> None:
    cut("x" * 100, spill, 10)
    old = put(spill, "other", "0001.txt", 100 * DAY)
    cut("x" * 100, spill, 10)
    assert old.exists()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a7_nothing_is_removed_through_a_link(spill: Spill, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    mine = elsewhere / "0001.txt"
    mine.write_text("not yours")
    os.utime(mine, (0, 0))
    spill.folder.parent.mkdir()
    (spill.folder.parent / "link").symlink_to(elsewhere)
    cut("x" * 100, spill, 10)
    assert mine.exists()


# Who may read it.


@pytest.fixture
def workspace(tmp_path: Path, spill: Spill) -> Workspace:
    (tmp_path / "ws").mkdir()
    return Workspace(tmp_path / "ws", readable=spill.folder)


def test_a7_what_is_kept_may_be_read_and_not_changed(workspace: Workspace, spill: Spill) -> None:
    path = str(parts(cut("x" * 100, spill, 10), "x" * 100, 10)[3])
    assert workspace.may_read(path)
    assert not workspace.is_inside(path)
    assert workspace.may_read(spill.folder)
    assert workspace.may_read("here.txt")


@pytest.mark.parametrize(
    "path", ["{}/..", "{}/../other/0001.txt", "{}-evil/0001.txt", "{}/../../ws-evil", "/", "", "a\0b", "../x"]
)
def test_a7_nothing_else_may_be_read(workspace: Workspace, spill: Spill, path: str) -> None:
    assert not workspace.may_read(path.format(spill.folder))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a7_a_link_among_the_kept_files_leads_where_it_leads(
    workspace: Workspace, spill: Spill, tmp_path: Path
) -> None:
    spill.folder.mkdir(parents=True)
    (spill.folder / "0001.txt").symlink_to(tmp_path / "secret")
    (workspace.root / "link").symlink_to(spill.folder)
    assert not workspace.may_read(spill.folder / "0001.txt")
    assert workspace.may_read("link/0002.txt")


def test_a7_without_such_a_folder_nothing_outside_may_be_read(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "ws")
    assert not workspace.may_read(tmp_path / "spill")
    assert workspace.may_read(".")
