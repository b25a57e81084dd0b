"""edit_file: the one place that was meant, and no other byte."""

import asyncio
import codecs
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolCall

posix = pytest.mark.skipif(os.name == "nt", reason="modes and links of a POSIX system")


async def edited(bench, before: bytes, old: str, new: str, **more: bool) -> bytes:
    path = bench.file("a", before)
    await bench.call("edit_file", path="a", old=old, new=new, **more)
    return path.read_bytes()


async def refused(bench, before: bytes, old: str, new: str, **more: bool) -> str:
    """The refusal of an edit that leaves the file as it was; the preview refuses it in the same words."""
    path = bench.file("a", before)
    tool, arguments = bench.tools.find(
        ToolCall("1", "edit_file", {"path": "a", "old": old, "new": new, **more})
    )
    with pytest.raises(ToolError) as in_preview:
        tool.preview(arguments, bench.context)
    with pytest.raises(ToolError) as in_run:
        await tool.run(arguments, bench.context)
    assert str(in_preview.value) == str(in_run.value)
    assert path.read_bytes() == before
    return str(in_run.value)


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
        (b"a\rb\r\n", "a\rb", "a\rc", b"a\rc\r\n"),
        (b"a\r\r\nb\r\n", "a", "A", b"A\r\r\nb\r\n"),
        (b"\ra", "a", "\n", b"\r\n"),
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
CHANGES = st.tuples(TEXT.filter(bool), TEXT).filter(lambda change: change[0] != change[1])
PIECES = [b"a", b"b", b"\n", b"\xe9", "\u20ac".encode(), b"\0"]
BYTES = st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)
MIXED = st.lists(st.sampled_from([*PIECES, b"\r\n"]), max_size=12).map(b"".join)
ANY_FILE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100
)


async def attempt(bench, before: bytes, old: str, new: str, **more: bool) -> bytes | str:
    """The content after the edit, or the refusal; then the content is what it was."""
    path = Path(bench.root / "a")
    path.write_bytes(before)
    try:
        await bench.call("edit_file", path="a", old=old, new=new, **more)
    except ToolError as error:
        assert path.read_bytes() == before
        return str(error)
    return path.read_bytes()


@ANY_FILE
@given(BYTES, CHANGES, BYTES)
async def test_an_edit_changes_the_passage_and_nothing_else(
    bench, head: bytes, change: tuple[str, str], tail: bytes
) -> None:
    old, new = change
    before = head + old.encode() + tail
    times = sum(before.startswith(old.encode(), start) for start in range(len(before)))
    outcome = await attempt(bench, before, old, new)
    if times == 1 and not isinstance(outcome, str):
        assert outcome == head + new.encode() + tail
    else:
        assert ("not UTF-8" if times == 1 else "times in a") in outcome


@ANY_FILE
@given(BYTES, BYTES, BYTES, CHANGES)
async def test_all_replaced_is_what_replace_does(
    bench, head: bytes, middle: bytes, tail: bytes, change: tuple[str, str]
) -> None:
    old, new = (text.encode() for text in change)
    before = head + old + middle + old + tail
    outcome = await attempt(bench, before, *change, replace_all=True)
    assert outcome == before.replace(old, new) or "not UTF-8" in outcome


@ANY_FILE
@given(st.text("ab\n", max_size=12), CHANGES)
async def test_g04_a_crlf_file_is_edited_as_its_lf_twin(bench, text: str, change: tuple[str, str]) -> None:
    lf = f"{text}\n".encode()
    one = await attempt(bench, lf, *change)
    two = await attempt(bench, lf.replace(b"\n", b"\r\n"), *change)
    assert one == two if isinstance(one, str) else one.replace(b"\n", b"\r\n") == two


@ANY_FILE
@given(MIXED, CHANGES)
async def test_g04_in_a_mixed_file_every_other_byte_stays(
    bench, before: bytes, change: tuple[str, str]
) -> None:
    outcome = await attempt(bench, before, *change)
    if isinstance(outcome, str):
        return
    old, new = (text.encode() for text in change)
    head = common_head(before, outcome)
    tail = common_head(before[head:][::-1], outcome[head:][::-1])
    assert len(before) - head - tail <= len(old) + old.count(b"\n")
    seen_before, seen_after = (data.replace(b"\r\n", b"\n") for data in (before, outcome))
    assert seen_after == seen_before.replace(old, new, 1)


def common_head(one: bytes, other: bytes) -> int:
    return next(
        (count for count, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
