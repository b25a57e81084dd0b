"""The diff on screen says what happens to the file: applied to the old content it gives the new one."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_agent.workspace.files import Files
from mini_agent_tools import changes
from mini_agent_tools.changes import Change, diff_of


def diff(before: bytes | None, after: bytes) -> str:
    files = Files(Path("/workspace"))
    return diff_of(Change(files.workspace.root / "a", before, after, ""), files)


def applied(before: str, patch: str) -> str:
    """`patch` applied to `before`, every context line and every number checked."""
    old = re.findall(r"[^\n]*\n|[^\n]+\Z", before)
    new: list[str] = []
    position = 0
    lines = re.findall(r"[^\n]*\n", patch)[2:]
    for index, line in enumerate(lines):
        mark, text = line[0], line[1:]
        if index + 1 < len(lines) and lines[index + 1].startswith("\\"):
            text = text[:-1]
        if mark == "@":
            numbers = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n", line)
            assert numbers is not None
            start, length, new_start, new_length = (
                1 if one is None else int(one) for one in numbers.groups()
            )
            stop = start if length == 0 else start - 1
            new += old[position:stop]
            position = stop
            assert len(new) == (new_start if new_length == 0 else new_start - 1)
        elif mark in " -":
            assert old[position] == text
            position += 1
            new += [text] * (mark == " ")
        elif mark == "+":
            new.append(text)
        else:
            assert line == "\\ No newline at end of file\n"
    return "".join(new + old[position:])


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "x\x0cy\n", "\u2028\n"]), max_size=30)
TEXT = st.tuples(LINES, st.sampled_from(["", "end", "a"])).map(lambda parts: "".join(parts[0]) + parts[1])


@settings(max_examples=300, deadline=None)
@given(TEXT, TEXT)
def test_a_diff_applied_gives_the_new_content(before: str, after: str) -> None:
    patch = diff(before.encode(), after.encode())
    assert (patch == "") == (before == after)
    if patch:
        assert applied(before, patch) == after


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(TEXT, TEXT)
def test_so_does_the_diff_of_what_is_too_long_to_compare(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    monkeypatch.setattr(changes, "_MOST_COMPARED", 0)
    if patch := diff(before.encode(), after.encode()):
        assert applied(before, patch) == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch program")
def test_the_patch_program_understands_it(tmp_path: Path) -> None:
    before = "".join(f"{number}\n" for number in range(100))
    after = before.replace("3\n", "three\n").replace("77\n", "") + "end"
    (tmp_path / "a").write_text(before)
    subprocess.run(
        ["patch", "-p1"], input=diff(before.encode(), after.encode()), text=True, cwd=tmp_path, check=True
    )
    assert (tmp_path / "a").read_text() == after


def test_a_new_file_is_all_added() -> None:
    assert (
        diff(None, b"x\ny")
        == "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"
    )
    assert diff(None, b"") == "--- /dev/null\n+++ b/a\n"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (b"a\r\nb\r\n", b"a\r\nc\r\n", " a\n-b\n+c\n"),
        (b"a\r\nb\r\n", b"a\nb\n", "-a\r\n-b\r\n+a\n+b\n"),
        (b"a\r\nb\n", b"a\r\nc\n", " a\r\n-b\n+c\n"),
        (b"caf\xe9\nx\n", b"caf\xe9\ny\n", " caf\ufffd\n-x\n+y\n"),
    ],
)
def test_g04_line_ends_are_shown_where_they_change(before: bytes, after: bytes, shown: str) -> None:
    assert diff(before, after).partition(" @@\n")[2] == shown


def test_a_small_change_in_a_large_file_is_a_small_diff() -> None:
    before = b"".join(b"%d\n" % number for number in range(200_000))
    patch = diff(before, before.replace(b"\n150000\n", b"\nchanged\n"))
    assert patch == (
        "--- a/a\n+++ b/a\n@@ -149998,7 +149998,7 @@\n"
        " 149997\n 149998\n 149999\n-150000\n+changed\n 150001\n 150002\n 150003\n"
    )
