"""Bytes in, the same bytes out; nothing written over unseen, nothing left lying about."""

import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mini_agent.core.errors import ToolError
from mini_agent.workspace import files as files_module
from mini_agent.workspace.files import MOST_BYTES, Files

posix = pytest.mark.skipif(os.name == "nt", reason="modes, links and pipes of a POSIX system")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*")}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=300))
def test_what_is_written_is_what_is_read(files: Files, data: bytes) -> None:
    path = files.workspace.resolve("a/b/c")
    files.write(path, data)
    assert files.read(path) == data == path.read_bytes()
    assert names(files.workspace.root) == {"a", "b", "c"}


@posix
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o640, 0o666])
def test_the_mode_stays(files: Files, mode: int) -> None:
    path = files.workspace.resolve("script")
    path.write_bytes(b"old")
    path.chmod(mode)
    files.write(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
def test_a_new_file_gets_the_mode_that_is_usual_for_the_user(files: Files) -> None:
    usual, written = (files.workspace.resolve(name) for name in ("usual", "written"))
    usual.write_bytes(b"")
    files.write(written, b"")
    assert written.stat().st_mode == usual.stat().st_mode


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_the_owner_stays(files: Files) -> None:
    path = files.workspace.resolve("theirs")
    path.write_bytes(b"old")
    os.chown(path, 12345, 12346)
    files.write(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


@posix
def test_a_link_stays_a_link_and_its_target_gets_the_bytes(files: Files) -> None:
    root = files.workspace.root
    (root / "real").write_bytes(b"old")
    (root / "link").symlink_to("real")
    files.write(files.workspace.resolve("link"), b"new")
    assert (root / "link").readlink() == Path("real")
    assert (root / "real").read_bytes() == b"new"


def test_a_written_file_has_a_new_time(files: Files) -> None:
    path = files.workspace.resolve("a")
    path.write_bytes(b"old")
    os.utime(path, (1000, 1000))
    files.write(path, b"new")
    assert path.stat().st_mtime > 1000


@posix
def test_a_reader_never_sees_a_file_half_written(files: Files) -> None:
    path = files.workspace.resolve("a")
    path.write_bytes(b"old" * 1000)
    with files.open(path) as opened:
        files.write(path, b"new" * 2000)
        assert opened.read() == b"old" * 1000


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_failed_write_changes_nothing_and_leaves_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch, error: BaseException, old: bytes | None
) -> None:
    path = files.workspace.resolve("a")
    if old is not None:
        path.write_bytes(old)

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(ToolError if isinstance(error, OSError) else type(error)) as caught:
        files.write(path, b"new")
    assert "No space left" in str(caught.value) or not isinstance(error, OSError)
    assert names(files.workspace.root) == (set() if old is None else {"a"})
    assert old is None or path.read_bytes() == old


@posix
def test_a_private_file_is_private_while_it_is_written(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.workspace.resolve("key")
    path.write_bytes(b"old")
    path.chmod(0o600)
    modes = []

    def spy(new: Path, *_: object) -> None:
        modes.append(stat.S_IMODE(new.stat().st_mode))

    monkeypatch.setattr(files_module, "_make_alike", spy)
    files.write(path, b"new")
    assert modes == [0o600]


def refuse(path: Path) -> None:
    path.write_bytes(b"keep me")
    path.chmod(0o444)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (Path.mkdir, "folder"),
        (refuse, "read-only"),
        pytest.param(lambda path: os.mkfifo(path), "ordinary file", marks=posix),
    ],
)
def test_what_must_not_be_replaced_is_not(files: Files, make: object, word: str) -> None:
    path = files.workspace.resolve("a")
    make(path)
    before = path.lstat()
    with pytest.raises(ToolError, match=word):
        files.write(path, b"new")
    assert path.lstat().st_ino == before.st_ino
    assert names(files.workspace.root) == {"a"}


@pytest.mark.parametrize(
    ("name", "word"),
    [("missing", "list_dir"), ("folder", "list_dir"), ("file/below", "Not a directory|no file")],
)
def test_what_is_no_file_is_refused_in_words(files: Files, name: str, word: str) -> None:
    files.workspace.resolve("folder").mkdir()
    files.workspace.resolve("file").write_bytes(b"")
    with pytest.raises(ToolError, match=word):
        files.read(files.workspace.resolve(name))


@posix
@pytest.mark.parametrize("name", ["/dev/zero", "/dev/tty", "pipe"])
def test_g16_what_is_no_ordinary_file_is_not_read(files: Files, name: str) -> None:
    os.mkfifo(files.workspace.root / "pipe")
    with pytest.raises(ToolError):
        files.read(files.workspace.resolve(name))


@posix
def test_g08_a_path_that_has_become_a_link_meanwhile_is_not_followed(files: Files) -> None:
    path = files.workspace.resolve("a")
    (files.workspace.root / "secret").write_bytes(b"secret")
    path.symlink_to("secret")
    with pytest.raises(ToolError):
        files.read(path)


@posix
def test_g16_a_file_that_is_too_large_is_refused_before_it_is_in_memory(files: Files) -> None:
    path = files.workspace.resolve("large")
    with path.open("wb") as file:
        file.truncate(MOST_BYTES)
    assert len(files.read(path)) == MOST_BYTES
    os.truncate(path, 1 << 40)
    with pytest.raises(ToolError, match="too large"):
        files.read(path)


def test_a_file_is_fresh_until_its_content_differs_from_what_was_seen(files: Files) -> None:
    path = files.workspace.resolve("a")
    assert not files.is_known(path)
    files.require_fresh(path, b"anything, since the model has seen nothing")
    files.remember(path, sha256(b"seen").digest())
    assert files.is_known(path)
    files.require_fresh(path, b"seen")
    with pytest.raises(ToolError, match="changed since it was read"):
        files.require_fresh(path, b"SEEN")
    files.remember(path, sha256(b"SEEN").digest())
    files.require_fresh(path, b"SEEN")


def test_reading_for_the_program_is_not_seeing_by_the_model(files: Files) -> None:
    path = files.workspace.resolve("a")
    path.write_bytes(b"x")
    files.read(path)
    assert not files.is_known(path)
