"""The demo model's change to a file: made from the file's real text, and of that text it keeps everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.sample_edits import comment, edit_of, file_lines

lines = st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8))


@given(lines.filter(lambda text: text[-1:] != [""]))
def test_lines_are_the_files_own(text: list[str]) -> None:
    assert file_lines("\n".join(text) + "\n") == (text or [""])


@pytest.mark.parametrize(
    "note",
    [
        "[Lines 1-2; the file goes on, 90,000 bytes in all. Read on with offset 3.]",
        "[Lines 9-10: the end of the file. \ufffd stands for bytes that are not UTF-8 text.]",
        "[\ufffd stands for bytes that are not UTF-8 text.]",
    ],
)
def test_a_note_is_no_line_of_the_file(note: str) -> None:
    assert file_lines(f"[section]\na = 1\n{note}") == ["[section]", "a = 1"]


def test_an_empty_file_has_no_lines() -> None:
    assert file_lines("[The file is empty.]") == []


@given(lines, st.sampled_from(["a.py", "b.md", "c", "d.txt", "e.go"]))
def test_the_edit_finds_its_text_once_and_keeps_the_rest(text: list[str], path: str) -> None:
    change = edit_of(path, text)
    content = "\n".join(text)
    if change is None:
        return
    old, new = change
    assert content.find(old) == content.rfind(old) != -1
    assert content.replace(old, new) == content.replace(
        old, f"{old}\n{comment(path, 'Edited by the demo model')}"
    )


@given(lines.filter(lambda text: len(set(filter(str.strip, text))) == len(text) > 0))
def test_where_lines_differ_there_is_an_edit(text: list[str]) -> None:
    assert edit_of("a.py", text) is not None


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "# Edited by the demo model"),
        ("A.TS", "// Edited by the demo model"),
        ("README.md", "<!-- Edited by the demo model -->"),
        ("style.css", "/* Edited by the demo model */"),
        ("LICENSE", "Edited by the demo model"),
    ],
)
def test_the_new_line_is_a_comment_of_the_language(path: str, line: str) -> None:
    assert edit_of(path, ["first", "last", ""]) == ("last", f"last\n{line}")


def test_an_earlier_edit_is_counted_up() -> None:
    text = ["x = 1", "# Edited by the demo model"]
    old, new = edit_of("a.py", text) or ("", "")
    assert (old, new) == ("# Edited by the demo model", "# Edited by the demo model, 2 times")
    assert edit_of("a.py", ["x = 1", new]) == (new, "# Edited by the demo model, 3 times")


def test_repeated_last_lines_are_quoted_with_what_is_before_them() -> None:
    assert edit_of("a.go", ["{", "}", "if {", "}"]) == ("if {\n}", "if {\n}\n// Edited by the demo model")


@pytest.mark.parametrize("text", [[], [""], ["", " ", ""], ["same"] * 50])
def test_where_nothing_can_be_quoted_there_is_no_edit(text: list[str]) -> None:
    assert edit_of("a.py", text) is None


def test_json_is_left_alone() -> None:
    assert edit_of("package.json", ["{", "}"]) is None
