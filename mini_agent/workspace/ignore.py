"""What git would leave out: the rules of .gitignore files (gitignore(5), git's wildmatch.c).

Matching is by characters, where git takes bytes. A library (pathspec) tries each rule by itself on each path, 23 µs a path
with 45 rules; here the rules of a file that say the same are a set, a tuple of endings and a regular expression: 1 µs.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

_SPECIAL = re.compile(r"[*?\[\\]")
_STARS = re.compile(r"\*{2,}")
_CLASS = re.compile(r":([^\]]*):\]")

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": " \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Ignore:
    """The rules that hold in one folder: those of its own file, then those of the folders above it.

    Paths are strings with `/` between the names and, where it is a folder, behind the last one.
    """

    def __init__(self, runs: "tuple[tuple[int, _Run], ...]" = ()) -> None:
        self._runs = (
            runs  # the strongest first; each with the length of the path of the folder it counts from
        )

    def with_rules(self, text: str, folder: str) -> "Ignore":
        """These, and stronger than them those of a file with this text in `folder` (a path with a slash behind it)."""
        runs = tuple((len(folder), run) for run in _runs(text))
        return Ignore(runs + self._runs) if runs else self

    def leaves_out(self, path: str, name: str) -> bool:
        """Whether `path` is left out. name: its last name, where it is a folder with the slash.

        A path in a folder that is left out is left out, too; that is not seen here: whoever walks does not go in.
        """
        for base, run in self._runs:
            if (
                name in run.names
                or (run.endings and name.endswith(run.endings))
                or (run.name and run.name.match(name))
                or (run.path and run.path.match(path, base))
            ):
                return run.leaves_out
        return False


class _Run(NamedTuple):
    """Rules of one file that stand together and say the same, so that their order does not matter."""

    leaves_out: bool
    names: frozenset[str]
    endings: tuple[str, ...]
    name: re.Pattern[str] | None
    path: re.Pattern[str] | None


class _Rule(NamedTuple):
    """One line: a pattern for names or, where it has a slash in it, for paths from the file's folder."""

    leaves_out: bool
    glob: str
    folders_only: bool
    for_paths: bool


def _runs(text: str) -> Iterator[_Run]:
    """The last line is the strongest."""
    rules = [rule for line in text.removeprefix("\ufeff").split("\n") if (rule := _rule(line))]
    for leaves_out, group in groupby(reversed(rules), key=lambda rule: rule.leaves_out):
        names: set[str] = set()
        endings: list[str] = []
        by_name: list[str] = []
        by_path: list[str] = []
        for rule in group:
            ends = ("/",) if rule.folders_only else ("", "/")
            if rule.for_paths:
                by_path += _alternative(_path(rule.glob), rule)
            elif not _SPECIAL.search(rule.glob):
                names.update(rule.glob + end for end in ends)
            elif rule.glob[0] == "*" and not _SPECIAL.search(rule.glob, 1):
                endings += (rule.glob[1:] + end for end in ends)
            else:
                by_name += _alternative(_component(rule.glob), rule)
        yield _Run(leaves_out, frozenset(names), tuple(endings), _any_of(by_name), _any_of(by_path))


def _rule(line: str) -> _Rule | None:
    """None where the line says nothing."""
    if line.startswith("#"):
        return None
    glob = _without_blanks(line.removesuffix("\r"))
    leaves_out = not glob.startswith("!")
    glob = glob.removeprefix("!")
    folders_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    for_paths = "/" in glob
    glob = glob.removeprefix("/")
    if "" in glob.split("/"):
        return None  # no name is empty
    return _Rule(leaves_out, glob, folders_only, for_paths)


def _without_blanks(line: str) -> str:
    """`line` without the blanks at its end, but for one that a backslash keeps."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(line) else bare


def _alternative(regex: str | None, rule: _Rule) -> list[str]:
    return [] if regex is None else [regex + ("/" if rule.folders_only else "/?")]


def _any_of(alternatives: list[str]) -> re.Pattern[str] | None:
    return re.compile(rf"(?:{'|'.join(alternatives)})\Z", re.DOTALL) if alternatives else None


# Matching must not run wild on a hostile rule (`*a*a*a*a*b`). What stands between two stars is taken at its first place and
# not moved again (atomic groups): a later place never leaves more room for the rest.


def _path(glob: str) -> str | None:
    """A regular expression for a path; None for a pattern that nothing matches. `**` stands for any number of folders."""
    parts: list[list[str]] = [[]]
    for component in glob.split("/"):
        if _STARS.fullmatch(component):
            parts.append([])
        elif (regex := _component(component)) is None:
            return None
        else:
            parts[-1].append(regex)
    head, *rest = ("/".join(part) for part in parts)
    if not rest:
        return head
    *middle, last = rest
    return (
        (head and head + "/")
        + "".join(f"(?>(?:[^/]+/)*?{part}/)" for part in middle if part)
        + (f"(?:[^/]+/)*{last}" if last else "[^/].*")
    )


def _component(glob: str) -> str | None:
    """A regular expression for one name; None for a pattern that nothing matches."""
    parts = [""]
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            parts.append("")
        elif char == "?":
            parts[-1] += "[^/]"
        elif char == "[":
            found = _bracket(glob, at)
            if found is None:
                return None
            regex, at = found
            parts[-1] += regex
        else:
            if char == "\\":
                char = glob[at : at + 1]
                at += 1
                if not char:
                    return None
            parts[-1] += re.escape(char)
    head, *rest = parts
    if not rest:
        return head
    *middle, last = rest
    head = head or "(?=[^/])"  # a name is never empty: `a/*` is not about `a/`
    return head + "".join(f"(?>[^/]*?{part})" for part in middle if part) + "[^/]*" + last


def _bracket(glob: str, at: int) -> tuple[str, int] | None:
    """The set of characters whose bracket opened before `at`, and where it ends; None where nothing can match."""
    negated = glob[at : at + 1] in ("!", "^")
    start = at = at + negated
    members = ""
    previous = ""  # the character that a range may begin with
    while True:
        char = glob[at : at + 1]
        at += 1
        if char == "]" and at > start + 1:
            # A set never stands for a slash.
            return (f"[^/{members}]" if negated else f"(?!/)[{members}]"), at
        if char == "[" and (found := _CLASS.match(glob, at)):
            if found[1] not in _CLASSES:
                return None
            members, previous, at = members + _CLASSES[found[1]], "", found.end()
            continue
        is_range = char == "-" and previous and glob[at : at + 1] not in ("", "]")
        if is_range:
            char = glob[at]
            at += 1
        if char == "\\":
            char = glob[at : at + 1]
            at += 1
        if not char:
            return None
        if not is_range:
            members, previous = members + re.escape(char), char
            continue
        if previous <= char:
            members += f"{re.escape(previous)}-{re.escape(char)}"
        previous = ""
