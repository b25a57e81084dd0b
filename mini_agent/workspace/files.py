"""The files of a workspace: read and written byte-exactly, and never written over unseen (product T2)."""

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mini_agent.core.errors import ToolError
from mini_agent.workspace.paths import Workspace

MOST_BYTES = 10_000_000
"""The largest file that is held in memory whole, and so the largest that can be changed here."""

# A file must not block: a pipe waits for its other end when opened. The last name must not have become a link meanwhile.
_READING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_CREATING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Files:
    """What the tools see of the disk, and what the model has seen of each file.

    Takes real paths, as `workspace.resolve` gives them; whether one may be touched was judged before. Everything here
    raises ToolError with a text for the model. One object lives as long as the conversation whose memory it is.

    root, home, readable: as in `Workspace`.
    """

    def __init__(self, root: Path, home: Path | None = None, readable: Path | None = None) -> None:
        self.workspace = Workspace(root, home, readable)
        self._seen: dict[Path, bytes] = {}

    def open(self, path: Path) -> BinaryIO:
        """An ordinary file, opened to read its bytes."""
        shown = self.workspace.relative(path)
        with self._refusals(shown):
            # On Windows a folder can't be opened at all, and says no more than that permission is denied.
            if path.is_dir():
                raise ToolError(f"{shown} is a folder. list_dir shows what is in it.")
            file = os.fdopen(os.open(path, _READING), "rb")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise ToolError(f"{shown} is not an ordinary file.")
        return file

    def read(self, path: Path) -> bytes:
        """The whole content, up to MOST_BYTES. This does not count as seen by the model."""
        shown = self.workspace.relative(path)
        with self.open(path) as file, self._refusals(shown):
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ToolError(
                f"{shown} is too large for this: over {MOST_BYTES:,} bytes. Use a command instead."
            )
        return data

    def remember(self, path: Path, sha256: bytes) -> None:
        """The model has seen `path`. sha256: the digest of the whole content it had then."""
        self._seen[path] = sha256

    def is_known(self, path: Path) -> bool:
        """Whether the model has seen the file, in whatever state."""
        return path in self._seen

    def require_fresh(self, path: Path, data: bytes) -> None:
        """Raises ToolError where the model has seen the file and it was not `data` then."""
        if path in self._seen and self._seen[path] != hashlib.sha256(data).digest():
            shown = self.workspace.relative(path)
            raise ToolError(f"{shown} has changed since it was read. Read it again, then make the change.")

    def write(self, path: Path, data: bytes) -> None:
        """Replaces or creates the file, with the folders that lead to it.

        It is never seen half-written: another file is written beside it and takes its name. Mode, owner and extended
        attributes are those of the old file. Nothing is awaited here, so that a cancel comes before or after, not
        between. There is no fsync: this guards against a crash of the program, not of the machine, as an editor does.
        """
        with self._refusals(self.workspace.relative(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            old = _old(path)
            beside = path.with_name(f".mini-agent-{secrets.token_hex(8)}.tmp")
            try:
                mode = 0o666 if old is None else 0o600  # a private file stays private from its first byte
                with os.fdopen(os.open(beside, _CREATING, mode), "wb") as file:
                    file.write(data)
                if old is not None:
                    _make_alike(beside, path, old)
                beside.replace(path)
            except BaseException:
                with suppress(OSError):
                    beside.unlink()
                raise

    @contextmanager
    def _refusals(self, shown: str) -> Iterator[None]:
        """What the system refuses, in words for the model."""
        try:
            yield
        except FileNotFoundError as error:
            raise ToolError(f"There is no {shown}. list_dir shows what there is.") from error
        except OSError as error:
            raise ToolError(f"{shown}: {error.strerror or error}.") from error


def _old(path: Path) -> os.stat_result | None:
    """What stands at `path`. Raises OSError where it must not be written over.

    Replacing needs the folder's permission only; that the file itself is read-only has to be looked at.
    """
    try:
        old = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(old.st_mode):
        raise OSError(None, "is a folder")
    if not stat.S_ISREG(old.st_mode):
        raise OSError(None, "is not an ordinary file")
    if not old.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise OSError(None, "is read-only")
    return old


def _make_alike(new: Path, path: Path, old: os.stat_result) -> None:
    """Gives `new` the owner, mode and attributes of the file at `path`, and a time of its own."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(new, old.st_uid, old.st_gid)
    shutil.copystat(path, new)
    os.utime(new)
