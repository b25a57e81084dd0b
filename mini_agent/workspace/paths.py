"""What is inside the workspace and what is not: the one place that knows."""

import os
import re
from pathlib import Path

from mini_agent.core.errors import ToolError

_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_SHARE = re.compile(r"[\\/]{2}")
_HOME = re.compile(r"~(?P<user>[^\\/]*)(?:[\\/]+|$)")


class Workspace:
    """The folder in which the agent works.

    Paths are judged by what they really are, with links followed, never by how they are spelled. What is outside is not
    refused here: a path resolves wherever it leads, and whoever acts on it asks `is_inside` first (product T3).

    root: the folder; it may be reached by a link itself, and it may be gone. home: what `~` stands for, None where that
    is not known. readable: a folder elsewhere that may be read as if it were inside (what was cut from results is kept
    there); it need not exist.
    """

    def __init__(self, root: Path, home: Path | None = None, readable: Path | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        self._home = home
        self._readable = () if readable is None else (Path(os.path.realpath(readable)),)

    def resolve(self, path: str) -> Path:
        """The real path that `path` leads to, absolute or from the workspace; it need not exist.

        Raises ToolError where it can't be a path on this system.
        """
        if not path.strip():
            raise ToolError("The path is empty. Name a file or a folder; the workspace itself is `.`.")
        if "\0" in path:
            raise ToolError("The path has a NUL character in it, which no file name can have.")
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise ToolError("The path has a broken character in it, which no file name can have.") from error
        self._refuse_foreign(path)
        return _real(self.root / self._expand(path))

    def is_inside(self, path: str | Path) -> bool:
        """Whether `path` leads to the workspace or into it; False where it leads nowhere."""
        return self._leads_into(path)

    def may_read(self, path: str | Path) -> bool:
        """Whether `path` leads where nobody has to be asked before it is only read."""
        return self._leads_into(path, *self._readable)

    def relative(self, path: Path) -> str:
        """A real path as it is shown: from the workspace where it is inside, else whole; always fit to be sent."""
        shown = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        return os.fsencode(shown.as_posix()).decode(errors="replace")

    def _leads_into(self, path: str | Path, *others: Path) -> bool:
        """Whether `path` leads into the workspace or into one of the other folders."""
        try:
            real = self.resolve(str(path))
        except ToolError:
            return False
        return any(real.is_relative_to(folder) for folder in (self.root, *others))

    def _refuse_foreign(self, path: str) -> None:
        """Paths of another system, which would become odd file names here, and shares of other machines.

        A share is refused before it is looked at: on Windows the look alone sends the user's credentials there.
        """
        if os.name != "nt":
            if _WINDOWS_PATH.match(path):
                raise ToolError(f"{path!r} is a Windows path, and this system is not Windows.")
        elif _SHARE.match(path) and not _SHARE.match(str(self.root)):
            raise ToolError(f"{path!r} is on another machine, which is not reached from here.")

    def _expand(self, path: str) -> str | Path:
        """`path` with a leading `~` replaced. `~name` alone is an ordinary file name, and editors make such files."""
        found = _HOME.match(path)
        if found is None or (found["user"] and found.end() == len(path)):
            return path
        if found["user"] or self._home is None:
            raise ToolError(
                f"{found[0]!r} is not known here. Give the whole path, or one from the workspace."
            )
        return self._home / path[found.end() :]


def _real(path: Path) -> Path:
    """`path` with every link in it followed.

    Before Python 3.13 `os.path.realpath` stops at links that lead in a circle and takes the rest as it is spelled, so that
    a link behind such a circle would pass unfollowed: hence the second look.
    """
    real = os.path.realpath(path)
    if os.path.realpath(real) != real:
        raise ToolError("The path leads through links that go in a circle.")
    return Path(real)
