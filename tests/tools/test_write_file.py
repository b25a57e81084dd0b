"""write_file: whole files, never over what the model has not seen."""

import codecs
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_agent.workspace.files import MOST_BYTES

posix = pytest.mark.skipif(os.name == "nt", reason="links of a POSIX system")


async def test_a_new_file_is_made_with_its_folders(bench) -> None:
    result = await bench.call("write_file", path="a/b/c.txt", content="caf\xe9\n")
    assert (bench.root / "a/b/c.txt").read_bytes() == "caf\xe9\n".encode()
    assert result.content == "Created a/b/c.txt: 6 bytes."
    assert result.detail == "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1 @@\n+caf\xe9\n"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.text(st.characters(blacklist_categories=["Cs"])))
async def test_a_new_file_holds_exactly_the_content(bench, content: str) -> None:
    path = bench.root / "a"
    path.unlink(missing_ok=True)
    await bench.call("write_file", path="a", content=content)
    assert path.read_bytes() == content.encode()


async def test_a_file_the_model_has_not_seen_is_not_replaced(bench) -> None:
    path = bench.file("a", b"precious\n")
    assert "Read it first" in await bench.refusal("write_file", path="a", content="x")
    assert path.read_bytes() == b"precious\n"
    await bench.call("read_file", path="a")
    result = await bench.call("write_file", path="a", content="x\n")
    assert path.read_bytes() == b"x\n"
    assert result.detail == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-precious\n+x\n"


async def test_an_empty_file_holds_nothing_to_be_seen(bench) -> None:
    path = bench.file("a", b"")
    await bench.call("write_file", path="a", content="x")
    assert path.read_bytes() == b"x"


async def test_a_file_that_changed_since_it_was_read_is_not_replaced(bench) -> None:
    path = bench.file("a", b"one\n")
    times = path.stat()
    await bench.call("read_file", path="a")
    path.write_bytes(b"two\n")
    os.utime(
        path, ns=(times.st_atime_ns, times.st_mtime_ns)
    )  # size and time as before: only the content tells
    assert "Read it again" in await bench.refusal("write_file", path="a", content="x")
    assert path.read_bytes() == b"two\n"
    await bench.call("read_file", path="a")
    await bench.call("write_file", path="a", content="x")


async def test_a_file_that_was_only_touched_has_not_changed(bench) -> None:
    path = bench.file("a", b"one\n")
    await bench.call("read_file", path="a")
    os.utime(path, (1, 1))
    await bench.call("write_file", path="a", content="x")


async def test_what_the_model_wrote_it_knows(bench) -> None:
    await bench.call("write_file", path="a", content="one")
    await bench.call("write_file", path="a", content="two")
    (bench.root / "a").write_bytes(b"three")
    assert "Read it again" in await bench.refusal("write_file", path="a", content="four")


async def test_a_file_that_is_gone_is_made_anew(bench) -> None:
    path = bench.file("a", b"one\n")
    await bench.call("read_file", path="a")
    path.unlink()
    assert (await bench.call("write_file", path="a", content="two")).content.startswith("Created")


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "a\nB\n", b"a\r\nB\r\n"),
        (b"a\r\nb\r\n", "a\r\nB\n", b"a\r\nB\n"),
        (b"a\r\nb\n", "a\nB\n", b"a\nB\n"),
        (b"a\nb\n", "a\nB\n", b"a\nB\n"),
        (codecs.BOM_UTF8 + b"a\n", "b\n", codecs.BOM_UTF8 + b"b\n"),
        (codecs.BOM_UTF8 + b"a\r\n", "b\nc", codecs.BOM_UTF8 + b"b\r\nc"),
        (codecs.BOM_UTF8 + b"a\n", "\ufeffb\n", codecs.BOM_UTF8 + b"b\n"),
        (b"a\n", "\ufeffb\n", codecs.BOM_UTF8 + b"b\n"),
    ],
)
async def test_g04_line_ends_and_byte_order_mark_stay(
    bench, before: bytes, content: str, after: bytes
) -> None:
    path = bench.file("a", before)
    await bench.call("read_file", path="a")
    await bench.call("write_file", path="a", content=content)
    assert path.read_bytes() == after


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(
    st.lists(
        st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=20),
        min_size=1,
    ),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
async def test_g04_what_was_read_can_be_written_back(bench, lines: list[str], end: str, mark: bool) -> None:
    text = "".join(line.lstrip("\ufeff") + end for line in lines)
    path = Path(bench.root / "a")
    path.write_bytes(codecs.BOM_UTF8 * mark + text.encode())
    before = path.read_bytes()
    content = (await bench.call("read_file", path="a")).content
    await bench.call("write_file", path="a", content=content)
    assert path.read_bytes() == before


@pytest.mark.parametrize("before", [b"# caf\xe9\n", "hello".encode("utf-16"), b"\x89PNG\xff"])
async def test_g07_a_file_that_is_not_utf8_is_not_replaced(bench, before: bytes) -> None:
    path = bench.file("a", before)
    bench.context.files.remember(path.resolve(), b"")
    assert "not UTF-8" in await bench.refusal("write_file", path="a", content="# caf\ufffd\n")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", ["\ud800", "a\udc00b", "\udc00\ud800"])
async def test_b25_half_a_character_is_refused_and_nothing_is_written(bench, content: str) -> None:
    assert "content" in await bench.refusal("write_file", path="a", content=content)
    assert not (bench.root / "a").exists()


async def test_b25_two_halves_that_belong_together_are_a_character(bench) -> None:
    await bench.call("write_file", path="a", content="\ud83d\ude00 and \ufffd")
    assert (bench.root / "a").read_text("utf-8") == "\U0001f600 and \ufffd"


async def test_what_can_not_be_written_is_refused(bench) -> None:
    (bench.root / "folder").mkdir()
    bench.file("file", b"x")
    assert "folder" in await bench.refusal("write_file", path="folder", content="x")
    assert await bench.refusal("write_file", path="file/below", content="x")
    with bench.file("large", b"").open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert "too large" in await bench.refusal("write_file", path="large", content="x")


def test_the_preview_shows_the_change_and_makes_none(bench) -> None:
    preview = bench.preview("write_file", path="new/file", content="x\n")
    real = (bench.root / "new/file").resolve()
    assert preview.targets == (str(real),)
    assert (preview.subject, preview.summary) == ("new/file", "write new/file")
    assert preview.diff == "--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+x\n"
    assert list(bench.root.iterdir()) == []


@posix
async def test_g08_a_link_out_is_written_through_and_named(bench) -> None:
    (bench.root / "d").symlink_to(bench.outside / "new")
    preview = bench.preview("write_file", path="d", content="x")
    assert preview.targets == (str((bench.outside / "new").resolve()),)
    assert not bench.context.files.workspace.is_inside(preview.targets[0])
    assert not (bench.outside / "new").exists()


@posix
async def test_t3_what_is_outside_is_refused_only_after_it_was_allowed(bench) -> None:
    (bench.outside / "secret").write_bytes(b"secret\n")
    path = str(bench.outside / "secret")
    assert bench.preview("write_file", path=path, content="x").diff == ""
    assert "Read it first" in await bench.refusal("write_file", path=path, content="x")
