"""read_file: exact enough to copy from, bounded whatever the file is."""

import asyncio
import codecs
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import ToolError
from mini_agent.workspace.files import Files
from mini_agent.workspace.spill import LIMIT, Spill, cut
from mini_agent_tools.read_file import LINE_CHARACTERS, LINES, SIZE, Window

CUT = re.compile(r" \[([\d,]+) more bytes of this line: read on with offset (-\d+)\]\n?")

posix = pytest.mark.skipif(os.name == "nt", reason="special files of a POSIX system")


@pytest.mark.parametrize(
    "text", ["one\ntwo\n", "no end", "\n", "\n\n", "tab\tand  blanks \n", "caf\xe9 \U0001f600\n"]
)
async def test_a_whole_file_is_shown_as_it_is(bench, text: str) -> None:
    bench.file("a", text.encode())
    assert (await bench.call("read_file", path="a")).content == text


async def test_g04_crlf_and_byte_order_mark_are_not_shown(bench) -> None:
    bench.file("a", codecs.BOM_UTF8 + b"one\r\ntwo\r\n")
    assert (await bench.call("read_file", path="a")).content == "one\ntwo\n"


async def test_a_part_is_shown_with_where_it_is(bench) -> None:
    bench.file("a", b"".join(b"line %d\n" % number for number in range(1, 11)))
    result = await bench.call("read_file", path="a", offset=3, limit="2")
    assert (
        result.content
        == "line 3\nline 4\n[Lines 3-4; the file goes on, 71 bytes in all. Read on with offset 5.]"
    )
    result = await bench.call("read_file", path="a", offset=9, limit=2)
    assert result.content == "line 9\nline 10\n[Lines 9-10: the end of the file.]"
    result = await bench.call("read_file", path="a", limit=10)
    assert "[" not in result.content


async def test_g07_bytes_that_are_not_utf8_are_marked(bench) -> None:
    bench.file("a", b"x = 1\n# caf\xe9\n")
    result = await bench.call("read_file", path="a")
    assert result.content == "x = 1\n# caf\ufffd\n[\ufffd stands for bytes that are not UTF-8 text.]"
    result.content.encode()
    bench.file("b", "a real \ufffd\n".encode())
    assert (await bench.call("read_file", path="b")).content == "a real \ufffd\n"


@pytest.mark.parametrize("start", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0", b"text " * 1000 + b"\0"])
async def test_g16_a_binary_file_is_named_with_its_size(bench, start: bytes) -> None:
    data = start + b"x" * 300_000
    bench.file("a", data)
    assert await bench.refusal("read_file", path="a") == f"a is a binary file: {len(data):,} bytes."


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
async def test_g16_utf16_is_not_taken_for_text(bench, encoding: str) -> None:
    mark = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    bench.file("a", mark + "hello".encode(encoding))
    assert "UTF-16" in await bench.refusal("read_file", path="a")


async def test_g16_an_empty_file_is_said_to_be_empty(bench) -> None:
    bench.file("a", b"")
    for arguments in {}, {"offset": 5}:
        result = await bench.call("read_file", path="a", **arguments)
        assert (result.content, result.is_error) == ("[The file is empty.]", False)


@pytest.mark.parametrize(
    ("data", "said"), [(b"x", "1 line."), (b"x\n", "1 line."), (b"x\n\n", "2 lines."), (b"x\ny", "2 lines.")]
)
async def test_g16_an_offset_past_the_end_is_told_how_many_lines_there_are(
    bench, data: bytes, said: str
) -> None:
    bench.file("a", data)
    for offset in 3, 10**9, 10**30:
        assert await bench.refusal("read_file", path="a", offset=offset) == f"a has only {said}"


@pytest.mark.parametrize("ended", [b"", b"\n", b"\nnext\n"])
async def test_g16_one_enormous_line_is_cut_and_said_to_be(bench, ended: bytes) -> None:
    bench.file("a", "\u20ac".encode() * 1_500_000 + ended)
    content = (await bench.call("read_file", path="a")).content
    assert content.startswith(
        "\u20ac" * LINE_CHARACTERS + " [4,494,000 more bytes of this line: read on with offset -6000]"
    )
    assert content.endswith(ended.decode())
    assert "\ufffd" not in content


async def whole_line(bench, path: str, offset: int) -> str:
    """A line, read as the notes say."""
    text = ""
    while True:
        content = (await bench.call("read_file", path=path, offset=offset, limit=1)).content
        assert len(content.encode()) <= LIMIT
        note = CUT.search(content)
        if note is None:
            return text + content.partition("\n")[0]
        text += content[: note.start()]
        offset = int(note[2])


@pytest.mark.parametrize("unit", ["x", "caf\xe9 ", "\u20ac", "\U0001f600", "a\u20ac\U0001f600"])
async def test_g16_the_rest_of_an_enormous_line_is_read_by_its_notes(bench, unit: str) -> None:
    line = (unit * 100_000)[:100_000]
    bench.file("a", f"before\n{line}\r\nbehind\n".encode())
    content = (await bench.call("read_file", path="a")).content
    assert content.endswith("]\nbehind\n")  # the others keep their numbers
    assert await whole_line(bench, "a", 2) == line
    assert await whole_line(bench, "a", 3) == "behind"
    bench.file("b", codecs.BOM_UTF8 + line.encode())
    assert await whole_line(bench, "b", 1) == line


async def test_g16_behind_the_rest_of_a_line_the_file_goes_on(bench) -> None:
    bench.file("a", b"one\n" + b"x" * (LINE_CHARACTERS + 3) + b"\nthree\nfour\n")
    rest = -(4 + LINE_CHARACTERS)
    shown = await bench.call("read_file", path="a")
    assert (
        f"{'x' * LINE_CHARACTERS} [3 more bytes of this line: read on with offset {rest}]\nthree"
        in shown.content
    )
    content = (await bench.call("read_file", path="a", offset=rest, limit=2)).content
    assert content.startswith("xxx\nthree\n[Lines 2-3, from byte 2,004; the file goes on, ")
    assert content.endswith(" Read on with offset 4.]")
    content = (await bench.call("read_file", path="a", offset=rest)).content
    assert content == "xxx\nthree\nfour\n[Lines 2-4, from byte 2,004: the end of the file.]"


@pytest.mark.parametrize("offset", [0, -1, -20, 1 - LINE_CHARACTERS])
async def test_an_offset_from_the_end_is_refused(bench, offset: int) -> None:
    """No note names it, and other tools take it so."""
    bench.file("a", b"x\n" * 5000)
    assert "from 1" in await bench.refusal("read_file", path="a", offset=offset)


@pytest.mark.parametrize("data", [b"x" * 3000, b"x" * 2999 + b"\n"])
async def test_a_byte_past_the_end_is_told_how_many_there_are(bench, data: bytes) -> None:
    bench.file("a", data)
    for offset in -3000, -3001, -(10**30):
        assert await bench.refusal("read_file", path="a", offset=offset) == "a has only 3,000 bytes."


async def test_a7_all_of_a_result_that_is_one_line_can_be_read(bench) -> None:
    kept = Spill(bench.root.parent / "spill", "run", now=lambda: 0.0)
    bench.context = replace(bench.context, files=Files(bench.root, readable=kept.folder), spill=kept)
    result = "{" + ", ".join(f'"{number}": "caf\xe9"' for number in range(20_000)) + "}"
    path = cut(result, kept).partition("the whole is in ")[2].partition(", which read_file shows]")[0]
    assert bench.context.files.workspace.may_read(bench.preview("read_file", path=path).targets[0])
    assert await whole_line(bench, path, 1) == result


async def test_g16_many_lines_are_shown_in_parts_that_join(bench) -> None:
    lines = [f"{number} {'x' * (number % 97)}" for number in range(1, 5001)]
    bench.file("a", "\n".join(lines).encode())
    offset, shown = 1, []
    while True:
        content = (await bench.call("read_file", path="a", offset=offset)).content
        assert len(content.encode()) < SIZE + 200
        body, _, note = content.rpartition("\n[")
        assert len(body.splitlines()) <= LINES
        shown += body.splitlines()
        if "Read on with offset" not in note:
            break
        offset = int(note.split()[-1].rstrip(".]"))
        assert offset == len(shown) + 1
    assert shown == lines


@posix
async def test_g16_a_huge_file_costs_no_more_than_what_is_shown(bench) -> None:
    path = bench.file("a", b"first\nsecond\n" + b"x" * 10_000)
    os.truncate(path, 1 << 40)  # a hole: to read all of it would take minutes
    content = (await bench.call("read_file", path="a", limit=2)).content
    assert content.startswith("first\nsecond\n[Lines 1-2; the file goes on, 1,099,511,627,776 bytes in all.")


@posix
async def test_a_cancel_ends_the_search_in_a_huge_file(bench) -> None:
    path = bench.file("a", b"x" * 10_000)
    os.truncate(path, 1 << 40)
    reading = asyncio.create_task(bench.call("read_file", path="a", offset=10**9))
    await asyncio.sleep(0)
    assert not reading.done()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not bench.context.files.is_known(path)


@posix
@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "folder"])
async def test_g16_what_is_no_ordinary_file_is_refused_at_once(bench, path: str) -> None:
    os.mkfifo(bench.root / "pipe")
    (bench.root / "folder").mkdir()
    assert await bench.refusal("read_file", path=path)


async def test_what_is_not_there_is_said(bench) -> None:
    assert (
        await bench.refusal("read_file", path="a/b.txt")
        == "There is no a/b.txt. list_dir shows what there is."
    )


async def test_a_file_is_seen_once_it_was_read_to_its_end(bench) -> None:
    path = bench.file("a", b"x\n" * 10_000)
    await bench.call("read_file", path="a", limit=1)
    assert bench.context.files.is_known(path.resolve())
    bench.context.files.require_fresh(path.resolve(), b"x\n" * 10_000)


@posix
def test_g08_the_preview_names_what_is_really_read(bench) -> None:
    (bench.root / "link").symlink_to(bench.outside / "secret")
    preview = bench.preview("read_file", path="link")
    real = (bench.outside / "secret").resolve()
    assert preview.targets == (str(real),)
    assert preview.subject == str(real)
    assert preview.summary == f"read {real}"


def windowed(data: bytes, cuts: list[int], offset: int, limit: int) -> str:
    window = Window(offset, limit)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        window.feed(data[start:stop])
    window.close()
    try:
        return window.text("a", len(data))
    except ToolError as error:
        return f"refused: {error}"


BYTES = st.lists(
    st.sampled_from(
        [b"a", b"\n", b"\r", b"\r\n", b"\xe9", "\u20ac".encode(), b"\0", b"b" * 4001, b"\x80" * 4001]
    )
).map(b"".join)
PLACE = st.integers(1, 6)
OFFSET = PLACE | st.integers(-12_000, -LINE_CHARACTERS)


@settings(deadline=None)
@given(BYTES, st.lists(st.integers(0, 10_000)), OFFSET, PLACE)
def test_the_chunks_of_a_file_make_no_difference(
    data: bytes, cuts: list[int], offset: int, limit: int
) -> None:
    assert windowed(data, cuts, offset, limit) == windowed(data, [], offset, limit)


@settings(deadline=None)
@given(
    st.text(st.characters(blacklist_characters="\r\0", blacklist_categories=["Cs"]), max_size=200),
    PLACE,
    PLACE,
)
def test_a_window_is_those_lines_of_the_text(text: str, offset: int, limit: int) -> None:
    lines = text.removeprefix("\ufeff").split("\n")
    lines = [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])
    shown = windowed(text.encode(), [], offset, limit)
    wanted = "".join(lines[offset - 1 : offset - 1 + limit])
    if wanted:
        assert shown.startswith(wanted)
        assert shown[len(wanted) :].lstrip("\n").startswith("[Lines ") == (offset > 1 or limit < len(lines))
    else:
        assert shown.startswith(("refused", "[The file is empty"))


@settings(deadline=None)
@given(
    BYTES,
    st.sampled_from([b"a", b"\x80", b"\xc3", "\u20ac".encode()]),
    st.integers(0, 3),
    st.integers(0, 70_000),
)
def test_the_notes_of_a_cut_line_lead_through_all_of_its_bytes(
    data: bytes, unit: bytes, before: int, size: int
) -> None:
    line = b"." * before + (unit * size)[:size] + data.partition(b"\n")[0].rstrip(b"\r")
    whole, offset = b"one\n" + line + b"\ntwo\n", 2
    text = ""
    while True:
        shown = windowed(whole, [], offset, 1)
        note = CUT.search(shown)
        if note is None:
            break
        text += shown[: note.start()]
        left, rest = int(note[1].replace(",", "")), -int(note[2])
        assert rest - (-offset if offset < 0 else 4) >= LINE_CHARACTERS - 3
        assert rest + left == 4 + len(line)
        assert text == whole[4:rest].decode(errors="replace").replace("\0", "\ufffd")
        offset = -rest
    assert text + shown.partition("\n")[0] == line.decode(errors="replace").replace("\0", "\ufffd")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.binary(max_size=300))
async def test_any_file_is_read_or_refused(bench, data: bytes) -> None:
    Path(bench.root / "a").write_bytes(data)
    try:
        content = (await bench.call("read_file", path="a")).content
    except ToolError as error:
        content = str(error)
    assert content
    content.encode()
    assert "\0" not in content


@pytest.mark.parametrize("line", ["x\n", "\u20ac" * 400 + "\n", "x" * 5000 + "\n", "\xff\n"])
async def test_a7_what_is_shown_at_a_time_is_never_too_large_for_a_result(bench, line: str) -> None:
    # What the entrance cuts lies in a file that is read with this tool: a page must come through it whole.
    bench.file("a", line.encode("latin-1" if line == "\xff\n" else "utf-8") * 50_000)
    content = (await bench.call("read_file", path="a", limit=40_000)).content
    assert "Read on with offset" in content
    assert len(content.encode()) <= LIMIT


@pytest.mark.parametrize("byte", [b"x", b"\xff", "\U0001f600".encode()])
async def test_a7_the_rest_of_a_line_is_never_too_large_for_a_result(bench, byte: bytes) -> None:
    bench.file("a", byte * 100_000 + b"\n" + (b"y" * 100 + b"\n") * 2000)
    content = (await bench.call("read_file", path="a", offset=-LINE_CHARACTERS)).content
    assert "Read on with offset" in content
    assert SIZE - 200 < len(content.encode()) <= LIMIT
