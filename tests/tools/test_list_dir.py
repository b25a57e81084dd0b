"""list_dir: names, and nothing that could be taken for more."""

import os

import pytest

posix = pytest.mark.skipif(os.name == "nt", reason="names and links of a POSIX system")


async def test_names_are_listed_in_order_and_folders_marked(bench) -> None:
    bench.file("sub/inner", b"")
    for name in "b.txt", "a.txt", ".hidden":
        bench.file(name, b"")
    for arguments in {}, {"path": "."}, {"path": ""}, {"path": None}, {"path": str(bench.root)}:
        assert (await bench.call("list_dir", **arguments)).content == ".hidden\na.txt\nb.txt\nsub/"
    assert (await bench.call("list_dir", path="sub")).content == "inner"


async def test_an_empty_folder_is_said_to_be_empty(bench) -> None:
    result = await bench.call("list_dir")
    assert (result.content, result.is_error) == ("[The folder is empty.]", False)


async def test_g17_a_huge_folder_is_cut_and_said_to_be(bench) -> None:
    for number in range(1003):
        (bench.root / f"{number:04}").touch()
    lines = (await bench.call("list_dir")).content.splitlines()
    assert lines[:1000] == [f"{number:04}" for number in range(1000)]
    assert lines[1000:] == ["[3 more names are left out.]"]


@pytest.mark.parametrize(("path", "word"), [("missing", "no folder missing"), ("file", "read_file")])
async def test_what_is_no_folder_is_refused_in_words(bench, path: str, word: str) -> None:
    bench.file("file", b"")
    assert word in await bench.refusal("list_dir", path=path)


@posix
async def test_links_are_listed_by_what_they_lead_to(bench) -> None:
    for name, target in {"loop": "loop", "gone": "nowhere", "folder": ".", "file": "/etc/passwd"}.items():
        (bench.root / name).symlink_to(target)
    assert (await bench.call("list_dir")).content == "file\nfolder/\ngone\nloop"


@posix
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"caf\xe9", "caf\ufffd"),
        (b"two\nlines", "two\\x0alines"),
        (b"\x1b[31mred", "\\x1b[31mred"),
        ("caf\xe9 \U0001f600".encode(), "caf\xe9 \U0001f600"),
        ("turned\u202ename".encode(), "turned\\x202ename"),
    ],
)
async def test_a_strange_name_is_one_line_that_can_be_sent(bench, name: bytes, shown: str) -> None:
    try:
        (bench.root / os.fsdecode(name)).touch()
    except OSError:
        pytest.skip("this file system takes no such name")
    content = (await bench.call("list_dir")).content
    assert content == shown
    content.encode()


@posix
def test_the_preview_names_the_real_folder(bench) -> None:
    (bench.root / "out").symlink_to(bench.outside)
    assert bench.preview("list_dir", path="out").targets == (str(bench.outside.resolve()),)
    assert bench.preview("list_dir").targets == (str(bench.root.resolve()),)
    assert bench.preview("list_dir").summary == "list ."
