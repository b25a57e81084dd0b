"""edit_file: the one place that was meant, and no other byte."""

import asyncio
import codecs
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import ToolError

posix = pytest.mark.skipif(os.name == "nt", reason="modes and links of a POSIX system")


async def edited(bench, before: bytes, old: str, new: str, **more: bool) -> bytes:
    path = bench.file("a", before)
    await bench.call("edit_file", path="a", old=old, new=new, **more)
    return path.read_bytes()


async def refused(bench, before: bytes, old: str, new: str, **more: bool) -> str:
    """The refusal, which the preview gives as well, of an edit that leaves the file as it was."""
    path = bench.file("a", before)
    with pytest.raises(ToolError) as caught:
        bench.preview("edit_file", path="a", old=old, new=new, **more)
    tool, arguments = bench.tools.find(_call(old=old, new=new, **more))
    with pytest.raises(ToolError, match="^") as again:
        await tool.run(arguments, bench.context)
    assert str(caught.value) == str(again.value)
    assert path.read_bytes() == before
    return str(caught.value)


def _call(**arguments):
    from mini_agent.core.messages import ToolCall

    return ToolCall("1", "edit_file", {"path": "a", **arguments})


async def test_an_edit_says_what_it_did(bench) -> None:
    path = bench.file("src/a.py", b"one\ntwo\nthree\n")
    result = await bench.call("edit_file", path="src/a.py", old="two", new="2")
    assert path.read_bytes() == b"one\n2\nthree\n"
    assert result.content == "Edited src/a.py: 1 replacement (line 2)."
    assert result.detail == "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def test_the_preview_shows_the_change_and_makes_none(bench) -> None:
    path = bench.file("a", b"one\ntwo\n")
    preview = bench.preview("edit_file", path="a", old="two", new="2")
    assert preview.targets == (str(path.resolve()),)
    assert (preview.subject, preview.summary) == ("a", "edit a")
    assert preview.diff == "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("before", "old", "said"),
    [
        (b"def dev():\n    x = 1\ndef prod():\n    x = 1\n", "    x = 1", "2 times in a (lines 2, 4)"),
        (b"aaa", "aa", "2 times in a (lines 1, 1)"),
        (b"x\n\n\ny", "\n\n", "2 times in a (lines 1, 2)"),
        (b"x\r\n\r\n\r\ny", "\n\n", "2 times in a (lines 1, 2)"),
        (b"x\ny\r\nx\r\ny\n", "x\ny", "2 times in a (lines 1, 3)"),
        (b"ab" * 50, "ab", "more than 10 times"),
    ],
)
async def test_g01_what_is_there_more_than_once_is_ambiguous(
    bench, before: bytes, old: str, said: str
) -> None:
    text = await refused(bench, before, old, "z")
    assert said in text
    assert "replace_all" in text


async def test_g01_all_are_replaced_where_that_is_asked_for(bench) -> None:
    assert await edited(bench, b"x = 1\nx = 1\r\n", "x", "y", replace_all=True) == b"y = 1\ny = 1\r\n"
    assert await edited(bench, b"aaa", "aa", "b", replace_all=True) == b"ba"
    assert await edited(bench, b"one", "one", "1", replace_all=True) == b"1"


async def test_g03_nothing_to_change_is_said_to_be_that(bench) -> None:
    assert "nothing to change" in await refused(bench, b"a", "a", "a")
    assert "nothing to change" in await refused(bench, b"a\r\nb", "a\r\nb", "a\nb")
    assert "nothing to change" in await refused(bench, b"a", "zzz", "zzz")


async def test_g03_no_match_is_said_to_be_that(bench) -> None:
    text = await refused(bench, b"a\nb\n", "zzz", "y")
    assert "not found in a" in text
    assert "Read the file again" in text
    assert "not found" in await refused(bench, b"a\nb\n", "zzz", "y", replace_all=True)
    assert "not found" in await refused(bench, b"", "zzz", "y")
    assert "old is empty" in await refused(bench, b"a", "", "y")


@pytest.mark.parametrize(
    ("before", "old"),
    [
        (b"one\n\tif x:\n\t\ty()\n", "    if x:\n        y()"),
        (b"one\nif  x :\n", "if x :"),
        (b"one\nf(a,\r\n  b)  \r\nc\r\n", "f(a,\nb)\nc"),
        (b"one\nif x:   \n  y\n", "if x:\n  y\n"),
    ],
)
async def test_g03_a_near_miss_in_white_space_is_pointed_at(bench, before: bytes, old: str) -> None:
    text = await refused(bench, before, old, "z")
    assert "At line 2 " in text
    assert "white space" in text


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "a\nB", b"a\r\nB\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "a\r\nB", b"a\r\nB\r\nc\r\n"),
        (b"a\nb\nc\n", "a\r\nb", "a\r\nB\r\nC", b"a\nB\nC\nc\n"),
        (b"a\r\nb\r\n", "b", "b\nc\nd", b"a\r\nb\r\nc\r\nd\r\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a", "a", "a\nb", b"a\nb"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nb\nX\nd\n", b"a\r\nb\nX\r\nd\n"),
        (b"a\r\nb\nc\n", "b", "b\nx", b"a\r\nb\nx\nc\n"),
        (b"a\r\nb\r\n", "a\n", "", b"b\r\n"),
        (b"a\r\nb\r\n", "\nb\n", "\n", b"a\r\n"),
        (b"a\r\n\r\n\r\nb", "\n\n\n", "\n\n", b"a\r\n\r\nb"),
        (codecs.BOM_UTF8 + b"a\r\nb", "a", "A", codecs.BOM_UTF8 + b"A\r\nb"),
        (b"a\r\nb\r\n", "\r", "", None),
    ],
)
async def test_g04_every_line_keeps_its_end(
    bench, before: bytes, old: str, new: str, after: bytes | None
) -> None:
    if after is None:
        await refused(bench, before, old, new)
    else:
        assert await edited(bench, before, old, new) == after


async def test_g07_bytes_that_are_not_utf8_survive(bench) -> None:
    assert await edited(bench, b"x = 1\n# caf\xe9\n", "x = 1", "x = 2") == b"x = 2\n# caf\xe9\n"


async def test_g07_utf8_does_not_get_into_another_encoding(bench) -> None:
    assert "not UTF-8" in await refused(bench, b"x = 1\n# caf\xe9\n", "x", "\xe9")
    assert await edited(bench, "x # \xe9\n".encode(), "x", "\xe9") == "\xe9 # \xe9\n".encode()
    # What old and new have in common is not put in.
    assert await edited(bench, b"\xe9 \xc3\xa9x", "\xe9x", "\xe9y") == b"\xe9 \xc3\xa9y"


async def test_g07_the_mark_for_such_bytes_is_explained(bench) -> None:
    assert "stands for bytes" in await refused(bench, b"# caf\xe9\n", "# caf\ufffd", "# coffee")


async def test_b25_half_a_character_is_refused(bench) -> None:
    assert "new has half" in await refused(bench, b"a", "a", "\ud800")
    assert "old has half" in await refused(bench, b"a", "\udc00", "b")


async def test_a_file_that_changed_since_it_was_read_is_not_edited(bench) -> None:
    path = bench.file("a", b"one\ntwo\n")
    await bench.call("read_file", path="a")
    path.write_bytes(b"one\n222\n")
    assert "Read it again" in await bench.refusal("edit_file", path="a", old="one", new="1")
    assert path.read_bytes() == b"one\n222\n"
    await bench.call("read_file", path="a")
    await bench.call("edit_file", path="a", old="one", new="1")
    await bench.call("edit_file", path="a", old="222", new="2")
    assert path.read_bytes() == b"1\n2\n"


async def test_an_edit_of_a_file_that_was_not_read_does_not_count_as_reading_it(bench) -> None:
    bench.file("a", b"one\ntwo\n")
    await bench.call("edit_file", path="a", old="one", new="1")
    assert "Read it first" in await bench.refusal("write_file", path="a", content="x")


@posix
async def test_mode_and_link_stay(bench) -> None:
    path = bench.file("real", b"one\n")
    path.chmod(0o750)
    (bench.root / "link").symlink_to("real")
    await bench.call("edit_file", path="link", old="one", new="1")
    assert (bench.root / "link").is_symlink()
    assert path.read_bytes() == b"1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


@posix
async def test_t3_what_is_outside_is_told_only_after_it_was_allowed(bench) -> None:
    secret = bench.outside / "secret"
    secret.write_bytes(b"password=x\n")
    preview = bench.preview("edit_file", path=str(secret), old="pass", new="PASS")
    assert "+PASSword=x" in preview.diff
    preview = bench.preview("edit_file", path=str(secret), old="guess", new="x")
    assert (preview.targets, preview.diff) == ((str(secret.resolve()),), "")
    assert "not found" in await bench.refusal("edit_file", path=str(secret), old="guess", new="x")


async def test_a_cancel_comes_before_an_edit_or_after_it(bench) -> None:
    path = bench.file("a", b"one\n")
    for steps in range(6):
        path.write_bytes(b"one\n")
        editing = asyncio.create_task(bench.call("edit_file", path="a", old="one", new="1"))
        for _ in range(steps):
            await asyncio.sleep(0)
        editing.cancel()
        await asyncio.gather(editing, return_exceptions=True)
        assert path.read_bytes() in (b"one\n", b"1\n")
        assert [one.name for one in bench.root.iterdir()] == ["a"]


# Of any bytes, exactly the passage that was meant. Few letters, so that passages repeat and overlap.

TEXT = st.text("ab\n\u20ac", max_size=6)
BYTES = st.lists(
    st.sampled_from([b"a", b"b", b"\n", b"\r\n", b"\r", b"\xe9", "\u20ac".encode(), b"\0"]), max_size=12
)
ANY_FILE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)


@ANY_FILE
@given(BYTES.map(b"".join), TEXT, TEXT, BYTES.map(b"".join))
async def test_an_edit_changes_the_passage_and_nothing_else(
    bench, head: bytes, old: str, new: str, tail: bytes
) -> None:
    assume(old != new and old and b"\r" not in head + tail)
    before = head + old.encode() + tail
    path = Path(bench.root / "a")
    path.write_bytes(before)
    count = sum(before.startswith(old.encode(), start) for start in range(len(before)))
    try:
        await bench.call("edit_file", path="a", old=old, new=new)
    except ToolError as error:
        assert path.read_bytes() == before
        assert count > 1 or "UTF-8" in str(error)
    else:
        assert count == 1
        assert path.read_bytes() == head + new.encode() + tail


@ANY_FILE
@given(BYTES.map(b"".join), TEXT, TEXT)
async def test_all_replaced_is_what_replace_does(bench, before: bytes, old: str, new: str) -> None:
    assume(old != new and old and old.encode() in before and b"\r" not in before)
    path = Path(bench.root / "a")
    path.write_bytes(before)
    try:
        await bench.call("edit_file", path="a", old=old, new=new, replace_all=True)
    except ToolError as error:
        assert "UTF-8" in str(error)
    else:
        assert path.read_bytes() == before.replace(old.encode(), new.encode())


@ANY_FILE
@given(st.lists(st.sampled_from(["a", "b", "\n"]), max_size=12).map("".join), TEXT, TEXT)
async def test_g04_a_crlf_file_is_edited_as_its_lf_twin(bench, before: str, old: str, new: str) -> None:
    assume(old != new)
    results = []
    for end in "\n", "\r\n":
        path = Path(bench.root / "a")
        path.write_bytes((before if "\n" in before else f"{before}\n").replace("\n", end).encode())
        try:
            await bench.call("edit_file", path="a", old=old, new=new)
            results.append(path.read_bytes().replace(end.encode(), b"<end>"))
        except ToolError as error:
            results.append(str(error).encode())
    # Where the last line end goes, the file no longer says which kind it had.
    assert results[0] == results[1]


@ANY_FILE
@given(BYTES.map(b"".join), TEXT, TEXT)
async def test_g04_in_a_mixed_file_every_other_byte_stays(bench, before: bytes, old: str, new: str) -> None:
    path = Path(bench.root / "a")
    path.write_bytes(before)
    try:
        await bench.call("edit_file", path="a", old=old, new=new)
    except ToolError:
        assert path.read_bytes() == before
        return
    after = path.read_bytes()
    # One stretch differs, and seen with LF only, the passage became the new text.
    head = len(os.path.commonprefix([before, after]))
    tail = len(os.path.commonprefix([before[head:][::-1], after[head:][::-1]]))
    assert len(before) - head - tail <= len(old.encode()) + old.count("\n")
    seen = before.replace(b"\r\n", b"\n")
    assert after.replace(b"\r\n", b"\n") == seen.replace(old.encode(), new.encode(), 1)
