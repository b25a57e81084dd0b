"""Images that a message mentions."""

import os

import pytest

from mini_agent.core.messages import Image
from mini_agent.ui.attachments import MOST_BYTES, MOST_IMAGES, attached

PNG = Image("image/png", b"png")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.png").write_bytes(b"png")
    (tmp_path / "a b.JPEG").write_bytes(b"jpeg")
    (tmp_path / "notes.md").write_text("text", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "images"),
    [
        ("what is @a.png?", [PNG]),
        ("compare @a.png and @a.png.", [PNG]),
        ('@"a b.JPEG" and @a.png', [Image("image/jpeg", b"jpeg"), PNG]),
        ("read @notes.md", []),
        ("mail me@a.png", []),
        ("no mention of a.png", []),
    ],
)
def test_images_go_out_and_other_files_are_names(folder, text, images):
    assert attached(text, folder, None) == (images, [])


def test_home_is_known(folder):
    assert attached("@~/a.png", folder / "elsewhere", folder) == ([PNG], [])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing.png", "there is no such file"),
        ("folder.png", "there is no such file"),
        ("huge.png", "more than 5,000,000 bytes"),
        ("empty.png", "it is empty"),
    ],
)
def test_what_can_not_be_sent_is_said(folder, name, why):
    (folder / "folder.png").mkdir()
    (folder / "empty.png").write_bytes(b"")
    (folder / "huge.png").write_bytes(b"x" * (MOST_BYTES + 1))
    images, (problem,) = attached(f"look at @{name}", folder, None)
    assert images == []
    assert problem.startswith(f"{name} is not sent: ")
    assert why in problem


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe.png")
    assert attached("@pipe.png", folder, None)[0] == []


def test_there_is_an_end_of_them(folder):
    for number in range(MOST_IMAGES + 2):
        (folder / f"{number}.png").write_bytes(b"png")
    images, problems = attached(" ".join(f"@{number}.png" for number in range(MOST_IMAGES + 2)), folder, None)
    assert (len(images), len(problems)) == (MOST_IMAGES, 2)
