"""The words that name faults: `status=503 retry-after=30`, `pause=0.5@3 cut@5`.

A word is `NAME`, `NAME=VALUE`, `NAME@EVENT` or both; words are separated by spaces, and quotes keep spaces in a value. In a
plan for a whole server `then` separates successive requests.
"""

import ast
import difflib
import itertools
import math
import random
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mini_agent.core.errors import ConfigError
from mini_agent.lab import faults
from mini_agent.lab.faults import Changes, Fault, Inserts, Omits, always, before
from mini_agent.lab.parts import Cut, Hold, Part, Pause, Verbatim

Read = Callable[[str], bytes]
"""Gives the bytes of a file by its name. Raises ConfigError."""

Make = Callable[[str, int | None, Read], Fault]
"""A fault from a word's value ("" where there is none) and the number of its event. Raises ValueError, ConfigError."""

THEN = "then"
OK = "ok"
RATE = "rate=SHARE[:SEED]"


class Word(NamedTuple):
    """One word. form: how it is written, `[...]` may be left out."""

    form: str
    make: Make

    @property
    def name(self) -> str:
        return re.split(r"[\[=@]", self.form)[0]


@dataclass(frozen=True, slots=True)
class Named:
    """A fault as it was asked for. rank: its word's place in the table."""

    text: str
    rank: int
    fault: Fault


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults that belong together. rate: the share of requests that have them."""

    each: tuple[Named, ...] = ()
    rate: float = 1.0
    seed: str = "0"

    def drawn(self, number: int) -> tuple[Named, ...]:
        """These, or none: drawn for the request of that number, the same every time."""
        # A generator for each request keeps no state, so that a request can be asked about again.
        share = random.Random(f"{self.seed}/{number}").random()  # noqa: S311  a fault's share, nothing secret
        return self.each if share < self.rate else ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What happens to a server's successive requests; the last step goes on for ever."""

    steps: tuple[Faults, ...]

    def at(self, number: int) -> tuple[Named, ...]:
        """The faults of the request of that number, from 1."""
        return self.steps[min(number, len(self.steps)) - 1].drawn(number)


def plan(spec: str, read: Read) -> Plan:
    """A plan for a whole server. Raises ConfigError, in one line that names the word."""
    steps: list[list[str]] = [[]]
    for word in _words(spec):
        if word == THEN:
            steps.append([])
        else:
            steps[-1].append(word)
    return Plan(tuple(_faults(step, read) for step in steps))


def parse(spec: str, read: Read) -> Faults:
    """The faults of one request. Raises ConfigError, in one line that names the word."""
    words = _words(spec)
    if THEN in words:
        raise ConfigError(f"{THEN!r} is for successive requests of a server; these are the faults of one")
    return _faults(words, read)


def in_order(several: Iterable[Named]) -> list[Fault]:
    """The faults in the order in which they act."""
    return [named.fault for named in sorted(several, key=lambda named: named.rank)]


def forms() -> list[str]:
    """How every word is written."""
    return [THEN, OK, RATE, *(word.form for word in _WORDS.values())]


def file_chunks(data: bytes) -> tuple[bytes, ...]:
    """The chunks in a file: one Python bytes literal a line; any other file is one chunk. Raises ValueError."""
    lines = [line.strip() for line in data.splitlines() if line.strip()]
    if not lines or not all(line.startswith((b"b'", b'b"')) for line in lines):
        return (data,)
    pieces = []
    for number, line in enumerate(lines, 1):
        try:
            piece = ast.literal_eval(line.decode())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            piece = None
        if not isinstance(piece, bytes):
            raise ValueError(f"line {number} of it is no bytes literal")
        pieces.append(piece)
    return tuple(pieces)


def _words(spec: str) -> list[str]:
    lexer = shlex.shlex(spec, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        return list(lexer)
    except ValueError as problem:
        raise ConfigError(f"faults {spec!r}: {problem}") from None


def _faults(words: Iterable[str], read: Read) -> Faults:
    each: list[Named] = []
    rate, seed = 1.0, "0"
    for text in words:
        name = re.split("[=@]", text)[0]
        try:
            if name == "rate":
                rate, seed = _rate(_value(text, RATE)[0])
            elif text != OK:
                word = _WORDS.get(name)
                if word is None:
                    raise ConfigError(_unknown(text, name))
                rank = list(_WORDS).index(name)
                each.append(Named(text, rank, word.make(*_value(text, word.form), read)))
        except ValueError as problem:
            form = RATE if name == "rate" else _WORDS[name].form
            raise ConfigError(f"fault {text!r}: {problem}; write {form}") from None
    return Faults(tuple(each), rate, seed)


def _unknown(text: str, name: str) -> str:
    known = [THEN, OK, "rate", *_WORDS]
    nearest = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are: {', '.join(known)}"
    return f"there is no fault {name!r} (in {text!r}): {hint}"


def _value(text: str, form: str) -> tuple[str, int | None]:
    """The value and the event of a word. Only a word that has an event may end in one: values hold @ as well."""
    pattern = r"[^=@]+(?:=([^=@]*))?(?:@(.*))?" if "@" in form else r"[^=@]+(?:=(.*))?"
    found = re.fullmatch(pattern, text, re.DOTALL)
    if found is None or (found[1] is not None and "=" not in form):
        raise ValueError("there is more in it than this word takes")
    if not found[1] and "=" in form and "[=" not in form:
        raise ValueError("it needs a value")
    at = found[2] if "@" in form else None
    return found[1] or "", None if at is None else _number(at, 0)


def _number(text: str, least: int, most: float = math.inf) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
        upto = f" to {most:g}" if most < math.inf else " on"
        raise ValueError(f"{text!r} is no whole number from {least}{upto}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{text!r} is no number of seconds")
    return seconds


def _rate(text: str) -> tuple[float, str]:
    share, _, seed = text.partition(":")
    try:
        rate = float(share)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise ValueError(f"{share!r} is no share from 0 to 1")
    return rate, seed or "0"


def _header(text: str) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon or not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or re.search(r"[\r\n\0]", value):
        raise ValueError(f"{text!r} is no header")
    return name, value


def _sizes(text: str) -> Callable[[], Iterator[int]]:
    kind, _, seed = text.partition(":")
    if kind == "random":
        return lambda: faults.sizes_at_random(seed or "0")
    size = _number(text, 1)
    return lambda: itertools.repeat(size)


def _bytes(name: str, at: int | None, read: Read) -> Fault:
    return Changes("answer", faults.chunks(file_chunks(read(name))))


def _ending(part: Part) -> Make:
    """What ends an answer: behind an event, or before anything of it."""

    def make(value: str, at: int | None, read: Read) -> Fault:
        return Changes("head", before(part)) if at is None else Inserts(at, always(part))

    return make


def _cutting(cut: Cut) -> Make:
    def make(value: str, at: int | None, read: Read) -> Fault:
        if not value:
            return _ending(cut)(value, at, read)
        if at is not None:
            raise ValueError("it counts bytes or events, not both")
        return Changes("body", faults.cut_after(_number(value, 0), cut))

    return make


def _pausing(value: str, at: int | None, read: Read) -> Fault:
    return Inserts("each" if at is None else at, always(Pause(_seconds(value))))


_WORDS: dict[str, Word] = {
    word.name: word
    for word in (
        Word("no-finish", lambda value, at, read: Omits("finish")),
        Word("no-done", lambda value, at, read: Omits("end")),
        Word(
            "status=CODE",
            lambda value, at, read: Changes("answer", faults.status(_number(value, 100, 999))),
        ),
        Word("html", lambda value, at, read: Changes("answer", faults.html)),
        Word("bytes=FILE", _bytes),
        Word(
            "error-in-200[@EVENT]",
            lambda value, at, read: Changes("answer", faults.error_inside(at or 0)),
        ),
        Word("delay=SECONDS", lambda value, at, read: Changes("head", before(Pause(_seconds(value))))),
        Word("first=SECONDS", lambda value, at, read: Inserts(0, always(Pause(_seconds(value))))),
        Word("garbage[@EVENT]", lambda value, at, read: Inserts(at or 0, faults.garbage)),
        Word("garbage-after-end", lambda value, at, read: Inserts("end", faults.garbage)),
        Word("pause=SECONDS[@EVENT]", _pausing),
        Word(
            "bad-chunk[@EVENT]",
            lambda value, at, read: Inserts(at or 0, always(Verbatim(b"no size\r\n"))),
        ),
        Word(
            "keepalive=SECONDS[@EVENT]",
            lambda value, at, read: Inserts(at or 0, faults.keepalive(_seconds(value))),
        ),
        Word("stall[@EVENT]", _ending(Hold())),
        Word("cut[=BYTES][@EVENT]", _cutting(Cut())),
        Word("reset[=BYTES][@EVENT]", _cutting(Cut(reset=True))),
        Word("gzip", lambda value, at, read: Changes("body", faults.gzipped)),
        Word(
            "split=BYTES|random[:SEED]",
            lambda value, at, read: Changes("body", faults.split(_sizes(value))),
        ),
        Word(
            "content-type=TYPE",
            lambda value, at, read: Changes("head", faults.header(*_header(f"content-type:{value}"))),
        ),
        Word(
            "retry-after=VALUE",
            lambda value, at, read: Changes("head", faults.header(*_header(f"retry-after:{value}"))),
        ),
        Word(
            "header=NAME:VALUE",
            lambda value, at, read: Changes("head", faults.header(*_header(value))),
        ),
        Word("truncate-headers", lambda value, at, read: Changes("head", faults.truncated_head)),
    )
}
"""Every word, in the order in which their faults act within a stage."""
