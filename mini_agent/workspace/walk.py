"""Walking a workspace: what glob and grep look at, and what `@` completes."""

import os
import shutil
import stat
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from mini_agent.workspace.ignore import Ignore

MOST_NAMES = 200_000
"""Where a walk ends by itself."""

_MOST_ENTRIES = 500_000  # of one folder: they are sorted, and so held in memory
_MOST_RULES_BYTES = 1_000_000
_GIT_S = 2.0

# What git needs to find the user's configuration, and no keys.
_FOR_GIT = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "SYSTEMROOT",
)


class Walk:
    """One pass over a folder and what is below it; iterate once.

    Each item holds what is in one folder that is not left out, in the order of the names: paths from `root` with `/`
    between the names and, where it is a folder, behind the last one. Folders near the top come first. What is ignored, as
    git would have it, and `.git` are left out; hidden files are not. A link is named and not followed, so that a walk
    neither goes in circles nor leaves `root`: whoever opens a file asks where it leads (`Workspace.is_inside`). Names that
    are not UTF-8 are as `os.fsdecode` has them.

    It reads the disk: use it in a thread. Between two items it can be left at any time.

    Rules are read here and git is not asked for the list: given a repository, git runs programs that the repository's
    own configuration names (core.fsmonitor). So a file that is ignored and yet tracked is left out, as ripgrep does.

    root: a real path. start: where in it to begin; what was named is walked, also where it is ignored itself. excludes:
    the user's own rules, see `global_excludes`. most: how many names to give.

    ignored: how many files and folders the rules have left out so far. unreadable: how many folders could not be read.
    is_cut: whether there is more than `most`.
    """

    def __init__(
        self,
        root: Path,
        start: Path | None = None,
        *,
        excludes: Path | None = None,
        most: int = MOST_NAMES,
    ) -> None:
        self.ignored = 0
        self.unreadable = 0
        self.is_cut = False
        self._root = _folder(root)
        self._start = _folder(start or root)
        if not self._start.startswith(self._root):
            raise ValueError(f"{start} is not inside {root}")
        self._excludes = excludes
        self._left = most

    def __iter__(self) -> Iterator[list[str]]:
        pending = deque([(self._start, self._rules_above())])
        while pending:
            folder, ignore = pending.popleft()
            entries = self._entries(folder)
            ignore = self._rules_in(folder, entries, ignore)
            found: list[str] = []
            for entry in entries:
                path = self._judge(folder, entry, ignore)
                if path is None:
                    continue
                if self._left == 0:
                    self.is_cut = True
                    break
                self._left -= 1
                found.append(path[len(self._root) :])
                if path[-1] == "/":
                    pending.append((path, ignore))
            yield found
            if self.is_cut:
                return

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                found = sorted(islice(entries, _MOST_ENTRIES), key=lambda entry: entry.name)
        except OSError:
            self.unreadable += 1
            return []
        self.is_cut = len(found) == _MOST_ENTRIES
        return found

    def _judge(self, folder: str, entry: os.DirEntry[str], ignore: Ignore) -> str | None:
        """The path of an entry; None where it is left out."""
        name = entry.name
        if name == ".git":
            return None
        try:
            if entry.is_dir(follow_symlinks=False) and not _is_junction(entry):
                name += "/"
            elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink() or _is_junction(entry)):
                return None  # a pipe, a socket, a device
        except OSError:
            return None
        path = folder + name
        if ignore.leaves_out(path, name):
            self.ignored += 1
            return None
        return path

    def _rules_in(self, folder: str, entries: list[os.DirEntry[str]], ignore: Ignore) -> Ignore:
        """The rules in a folder, given those above it. A repository inside another has nothing to do with its rules."""
        names = {entry.name for entry in entries if entry.name in (".git", ".gitignore")}
        if ".git" in names:
            ignore = self._rules_of_repository(folder)
        if ".gitignore" in names:
            ignore = ignore.with_rules(_gitignore(folder), folder)
        return ignore

    def _rules_above(self) -> Ignore:
        """The rules that come from above the start: from the top of its repository, else from the root."""
        start = Path(self._start)
        tops = (folder for folder in (start, *start.parents) if os.path.lexists(folder / ".git"))
        top = _folder(next(tops, Path(self._root)))
        ignore = self._rules_of_repository(top)
        folder = top
        for name in self._start[len(top) :].split("/")[:-1]:
            ignore = ignore.with_rules(_gitignore(folder), folder)
            folder += name + "/"
            if ignore.leaves_out(folder, name + "/"):
                ignore = Ignore()
        return ignore

    def _rules_of_repository(self, top: str) -> Ignore:
        ignore = Ignore()
        if self._excludes is not None:
            ignore = ignore.with_rules(_text(self._excludes), top)
        return ignore.with_rules(_text(_git_folder(top) / "info" / "exclude"), top)


def global_excludes(environ: Mapping[str, str], root: Path) -> Path | None:
    """The file of rules that the user has for all repositories, asked of git, else where it is by default.

    Runs git: use it in a thread. root: the workspace; a git that lies in there is not run. It is asked from outside, so
    that the workspace's own configuration has no say.
    """
    git = shutil.which("git", path=environ.get("PATH"))
    if git and Path(git).is_absolute() and not Path(os.path.realpath(git)).is_relative_to(root):
        try:
            answer = subprocess.run(  # noqa: S603  an absolute path and words of ours
                [git, "config", "--get", "--type=path", "core.excludesFile"],
                cwd=root.anchor,
                env={name: environ[name] for name in _FOR_GIT if name in environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_GIT_S,
                check=True,
            )
            return Path(os.fsdecode(answer.stdout.removesuffix(b"\n")))
        except (OSError, subprocess.SubprocessError):
            pass  # git does not work, or nothing is set
    if config := environ.get("XDG_CONFIG_HOME"):
        return Path(config, "git", "ignore")
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home, ".config", "git", "ignore") if home else None


def _folder(path: Path) -> str:
    """A folder as a string that a name can be put behind."""
    return path.as_posix().removesuffix("/") + "/"


def _git_folder(top: str) -> Path:
    """Where a repository keeps its own things: of a worktree and of a submodule that is elsewhere."""
    git = Path(top, ".git")
    if not git.is_file():
        return git
    git = Path(top, _text(git).removeprefix("gitdir:").strip())
    common = _text(git / "commondir").strip()
    return git / common


def _gitignore(folder: str) -> str:
    """The text of the .gitignore in a folder. One that is a link is not obeyed: git does not either."""
    path = Path(folder, ".gitignore")
    return "" if path.is_symlink() else _text(path)


def _text(path: Path) -> str:
    """The text of a small ordinary file, in the form that names have; empty where there is none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""  # a pipe would wait for somebody to write
        with path.open("rb") as file:
            return file.read(_MOST_RULES_BYTES).decode(errors="surrogateescape")
    except (OSError, ValueError):  # ValueError: what a .git file says is no path
        return ""


if sys.platform == "win32":

    def _is_junction(entry: os.DirEntry[str]) -> bool:
        return entry.stat(follow_symlinks=False).st_reparse_tag == stat.IO_REPARSE_TAG_MOUNT_POINT

else:

    def _is_junction(entry: os.DirEntry[str]) -> bool:
        return False
