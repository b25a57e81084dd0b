"""Finding paths by some of their letters, in hundreds of thousands of them, between two keys.

The paths are kept as lines of long strings, so that looking through them is left to the regular expression engine; Python
itself touches only what was found.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

SHOWN = 50
"""How many paths a search gives at most."""

LOOKED_AT = 1000
"""How many of those found are compared. Where there are more, weaker kinds of fit and later paths go without."""

CHUNK = 4096
"""Paths in one string. Looking through it takes about a millisecond, and nothing else in the process runs meanwhile."""

# Where a word begins: behind what is no letter and no digit, or at a capital behind a small letter or a digit.
_WORD = r"(?:(?<![^\W_])|(?<=[a-z\d])(?=[A-Z]))"


class Fit(IntEnum):
    """How a path has the letters that are looked for, the best first. Its name is the last of the names in it."""

    EXACT = 0
    """They are the name, or the whole path."""
    START = 1
    """The name begins with them; where there is a slash among them, the path does."""
    WORD = 2
    """A word in the name begins with them."""
    INSIDE = 3
    """They stand together in the name."""
    INITIALS = 4
    """Each of them begins a word in the name."""
    PATH_WORD = 5
    """A word in the path begins with them."""
    PATH_INSIDE = 6
    """They stand together in the path."""
    NAME_LETTERS = 7
    """They are in the name, in this order."""
    PATH_LETTERS = 8
    """They are in the path, in this order."""


def fold(text: str) -> str:
    """`text` in small letters, each by itself, so that it stays as long as it is; blanks of all widths become spaces.

    macOS puts narrow no-break spaces into the names of its screenshots.
    """
    if text.isascii():
        return text.lower()
    # What `lower` makes longer (I with a dot), and what it makes of a letter by its place (sigma).
    folded = text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")
    return folded.replace("\xa0", " ").replace("\u202f", " ")


class _Chunk(NamedTuple):
    """Lines as they are and in small letters, a newline before and behind each: a path's last name, a tab, the path."""

    text: str
    folded: str


class Query:
    """What is looked for: letters that a path has to have in this order. Capitals count where one is among them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.cased = any(map(str.isupper, text))
        self.needle = text if self.cased else fold(text)
        self._has_folder = "/" in text
        letters = [re.escape(letter) for letter in self.needle]
        together = "".join(letters)
        in_case = letters if self.cased else [f"(?i:{letter})" for letter in letters]
        self._word = re.compile(_WORD + "".join(in_case))
        self._initials = re.compile("".join(f"(?>[^/]*?{_WORD}{letter})" for letter in in_case))
        # The same for the lines of a chunk. A pattern that begins with what is rare is quick.
        self.together = [
            re.compile(rf"\t{together}/?\n" if self._has_folder else rf"\n{together}/?\t"),
            re.compile(("\t" if self._has_folder else "\n") + together),
            re.compile(together + r"(?=[^\t\n]*+\t)"),
            re.compile(together),
        ]
        self.apart_in_name = re.compile("\n" + _apart(letters))
        self.apart = re.compile("\t" + _apart(letters))
        self._apart = re.compile(_apart(letters))

    def subject(self, chunk: _Chunk) -> str:
        """Which of its strings to look through."""
        return chunk.text if self.cased else chunk.folded

    def fit(self, path: str) -> tuple[Fit, int] | None:
        """How `path` fits, and over how many characters the letters are spread; None where it does not."""
        subject = path if self.cased else fold(path)
        body = subject.removesuffix("/")
        at = body.rfind("/") + 1
        name = body[at:]
        size = len(self.needle)
        if self.needle in (name, subject[at:], body, subject):
            return Fit.EXACT, size
        if name.startswith(self.needle) or (self._has_folder and subject.startswith(self.needle)):
            return Fit.START, size
        if self.needle in name:
            return (Fit.WORD if self._word.search(path, at) else Fit.INSIDE), size
        if self._initials.match(path, at):
            return Fit.INITIALS, size
        if self.needle in subject:
            return (Fit.PATH_WORD if self._word.search(path) else Fit.PATH_INSIDE), size
        for fit, start in (Fit.NAME_LETTERS, at), (Fit.PATH_LETTERS, 0):
            if found := self._apart.match(subject, start):
                return fit, found.end() - subject.index(self.needle[0], start)
        return None


def _apart(letters: Iterable[str]) -> str:
    """A regular expression for the letters in this order. Each is taken at its first place: that leaves the most room."""
    # With the third character in it the set is compiled to a table, which makes a search a third faster.
    return "".join(rf"[^{letter}\0\t\n]*+{letter}" for letter in letters)


class _Search(NamedTuple):
    """A search that found all there is, in the first so many chunks: a longer query finds nothing else in them."""

    text: str
    chunks: int
    found: _Chunk


class Index:
    """Paths to be searched. One thread may add to it while another searches.

    The paths have a slash between names and behind a folder, no tab and no newline. Those added first are nearer to hand.
    """

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._last: _Search | None = None

    def add(self, paths: Sequence[str]) -> None:
        for start in range(0, len(paths), CHUNK):
            self._chunks.append(_chunk(paths[start : start + CHUNK]))

    def search(self, text: str, recent: Sequence[str] = ()) -> list[str]:
        """The paths that fit best, at most SHOWN, the best first.

        They go by `Fit`; among equals come first those used of late, then those with the letters closest together, then
        those in fewer folders, then the shorter. recent: paths used of late, the last one first; they may be missing here.
        """
        if not text:
            return list(dict.fromkeys([*recent, *islice(self._paths(), SHOWN)]))[:SHOWN]
        if "\n" in text or "\t" in text:
            return []
        query = Query(text)
        places = {path: place for place, path in enumerate(recent)}
        ranked: list[tuple[Fit, int, int, int, int, str]] = []
        for path in {**self._found(query), **dict.fromkeys(recent)}:
            if fit := query.fit(path):
                kind, spread = fit
                place = places.get(path, len(recent))
                ranked.append((kind, place, spread, path.count("/", 0, -1), len(path), path))
        return [rank[-1] for rank in sorted(ranked)[:SHOWN]]

    def _paths(self) -> Iterator[str]:
        for chunk in self._chunks:
            for line in chunk.text[1:-1].split("\n"):
                yield line.partition("\t")[2]

    def _found(self, query: Query) -> dict[str, None]:
        """All paths that fit; where they are too many, LOOKED_AT of them, by kinds of fit."""
        chunks = self._chunks.copy()
        count = len(chunks)
        last = self._last
        if last and last.chunks == count and query.text.startswith(last.text):
            chunks = [last.found]
        found: dict[str, None] = {}
        having = [chunk for chunk in chunks if query.needle in query.subject(chunk)]
        for pattern in query.together:
            _gather(found, pattern, having, query)
        if len(found) < LOOKED_AT:
            everything = found.copy()
            chunks = [
                chunk for chunk in chunks if all(letter in query.subject(chunk) for letter in query.needle)
            ]
            _gather(everything, query.apart, chunks, query)
            if len(everything) < LOOKED_AT:
                self._last = _Search(query.text, count, _chunk(everything))
                return everything
            _gather(found, query.apart_in_name, chunks, query)
            found |= dict.fromkeys(islice(everything, LOOKED_AT - len(found)))
        return found


def _chunk(paths: Iterable[str]) -> _Chunk:
    lines = [f"{path[path.rfind('/', 0, -1) + 1 :]}\t{path}" for path in paths]
    text = "\n".join(["", *lines, ""])
    folded = fold(text)
    return _Chunk(text, text if folded == text else folded)


def _gather(found: dict[str, None], pattern: re.Pattern[str], chunks: Iterable[_Chunk], query: Query) -> None:
    """Adds the paths of the lines in which `pattern` matches, as long as there are not too many."""
    for chunk in chunks:
        subject = query.subject(chunk)
        end = 0
        while len(found) < LOOKED_AT and (match := pattern.search(subject, end)):
            within = match.start() + 1  # behind the newline or tab that it may begin with
            end = subject.index("\n", within)
            found[chunk.text[subject.index("\t", subject.rindex("\n", 0, within)) + 1 : end]] = None
