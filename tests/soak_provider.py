"""The provider of a soak: what the model says to a request, marked so that every word of it can be told from all others.

Each answer has a number, and each of its words, reasonings and calls carries that number as a mark («17»). A request is
looked at when it arrives: by its marks it says which answers its conversation is made of.
"""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mini_agent.core.answers import (
    Answer,
    CallPiece,
    Piece,
    TextPiece,
    call_pieces,
    reasoning_pieces,
    text_pieces,
)
from mini_agent.core.messages import StopReason, Usage
from mini_agent.lab.families import play
from mini_agent.lab.playing import Ask
from mini_agent.lab.requests import LabRequest
from mini_agent.lab.seals import disclose
from mini_agent.lab.server import Say
from mini_agent.wire.asked import carries_images, carries_reasoning
from mini_agent.wire.shaping import IMAGES, REASONING

WINDOW = 12_000
"""Tokens that fit, by the provider's own count."""

_MARK = re.compile(r"«(\d+)»")
_SEALED = re.compile(r"lab-enclosed-[A-Za-z0-9_=-]+")
_WORDS = (
    "the",
    "file",
    "change",
    "goes",
    "there",
    "because",
    "a",
    "test",
    "says",
    "so;",
    "naïve",
    "日本",
    "ok",
)
_SIZES = (*(20, 100, 400) * 6, *(3_000, 8_000) * 2, 20_000, 90_000)
"""Characters of what a tool is asked to return; the last is more than a result may have."""


def marks(text: str) -> set[int]:
    """The numbers of the answers that a text is made of, sealed reasoning included."""
    disclosed = (disclose(item) or "" for item in _SEALED.findall(text))
    return {int(number) for part in (text, *disclosed) for number in _MARK.findall(part)}


@dataclass(frozen=True)
class Call:
    """One call as the model writes it. text: its arguments."""

    name: str
    text: str


@dataclass
class Turn:
    """What is planned for one turn.

    calls, faults: the share of answers with calls, and of requests with something wrong. storm: how many of its first
    requests meet a transient fault. again: the calls that the model has begun to make over and over. hook: is told of each
    request when it arrives.
    """

    calls: float = 0.5
    faults: float = 0.5
    storm: int = 0
    again: tuple[Call, ...] = ()
    hook: Callable[["Asked"], None] | None = None
    asked: list["Asked"] = field(default_factory=list)


@dataclass
class Asked:
    """One request and what becomes of it. kind: what is done to it. answer: the one that is played, if one is."""

    number: int
    request: LabRequest
    tokens: int
    rng: random.Random
    turn: Turn
    deepseek: bool
    kind: str = ""
    answer: Answer | None = None

    @property
    def is_summary(self) -> bool:
        return "<record>" in json.dumps(
            self.request.fields.get("messages") or self.request.fields.get("input")
        )

    @property
    def own(self) -> set[int]:
        """The numbers that its answer has: its own, and where calls are repeated, the one that they first came in."""
        called = [call.text for call in self.turn.again]
        return {self.number} | marks(" ".join(called))

    def words(self, count: int) -> str:
        return " ".join(f"«{self.number}»{self.rng.choice(_WORDS)}" for _ in range(count))

    def token(self, place: int) -> str:
        """What a call can be known by."""
        return f"«{self.number}».{place}"

    def said(
        self,
        *parts: Sequence[Piece],
        stop: StopReason = "end_turn",
        tokens: int | None = None,
        output: int | None = None,
        think: bool | None = None,
    ) -> Answer:
        """An answer of these parts. tokens: what is reported of the request, in place of the truth."""
        thinks = self.rng.random() < 0.4 if think is None else think
        thought = tuple(reasoning_pieces(self.words(4))) if thinks else ()
        pieces = (*thought, *(piece for part in parts for piece in part))
        usage = Usage(
            input_tokens=self.tokens if tokens is None else tokens,
            output_tokens=len(pieces) if output is None else output,
        )
        self.answer = Answer(pieces, stop, usage, model="soak")
        return self.answer

    def text(self, count: int = 12) -> tuple[Piece, ...]:
        return tuple(text_pieces(self.words(count)))

    def call(self, place: int, *, how: str = "fine") -> Call:
        """A call that means what it says."""
        arguments = {
            "token": self.token(place),
            "size": self.rng.choice(_SIZES),
            "slow_s": self.rng.choice((0, 0, 0, 0.3, 30)),
            "how": how,
        }
        return Call(
            self.rng.choice(("look", "look", "look", "note")), json.dumps(arguments, ensure_ascii=False)
        )

    def calling(self, calls: Sequence[Call], ids: Sequence[str] = ()) -> tuple[Piece, ...]:
        """The pieces of calls, some of them interleaved. ids: theirs, where they are to be special."""
        runs = [
            list(
                call_pieces(place, ids[place] if ids else f"call_{self.number}_{place}", call.name, call.text)
            )
            for place, call in enumerate(calls)
        ]
        if self.rng.random() < 0.3:
            return tuple(_interleaved(runs, self.rng))
        return tuple(piece for run in runs for piece in run)

    def normal(self) -> Answer:
        """What is said where the model does nothing strange."""
        if self.is_summary:
            return self.said(self.text(), think=False)
        if self.turn.again:
            return self.said(self.calling(self.turn.again), stop="tool_use")
        if self.rng.random() >= self.turn.calls:
            return self.said(self.text())
        how = self.rng.choice(("fine",) * 12 + ("refuses", "breaks", "stubborn"))
        calls = [
            self.call(place, how=how if place == 0 else "fine")
            for place in range(self.rng.choice((1, 1, 2, 4)))
        ]
        said = self.text(4) if self.rng.random() < 0.5 else ()
        return self.said(said, self.calling(calls), stop="tool_use")

    def events(self) -> int:
        """How many events `answer` has on the wire."""
        return sum(isinstance(part, bytes) for part in self._body())

    def bytes(self) -> int:
        return sum(len(part) for part in self._body() if isinstance(part, bytes))

    def _body(self) -> Sequence[object]:
        assert self.answer is not None
        assert self.request.api is not None
        return play(self.answer, self.request.api, Ask(self.request.streams)).body


def _interleaved(runs: list[list[CallPiece]], rng: random.Random) -> list[CallPiece]:
    opened = [run.pop(0) for run in runs]  # in order, because an index is told apart by when it first came
    rest: list[CallPiece] = []
    while any(runs):
        rest.append(rng.choice([run for run in runs if run]).pop(0))
    return [*opened, *rest]


class Provider:
    """The script of a lab server. kinds: gives the answer of one request, and its kind's name.

    allowed: the numbers of the answers that the conversation may be made of. key: what requests must carry. summary: the
    last request, where it asked for a summary. report: is told of what should not be.
    """

    def __init__(
        self, rng: random.Random, kinds: Callable[[Asked], tuple[str, Say]], report: Callable[[str], None]
    ) -> None:
        self._rng = rng
        self._kinds = kinds
        self._report = report
        self._number = 0
        self.turn = Turn()
        self.allowed: set[int] = set()
        self.deepseek = False
        self.key = ""
        self.summary: Asked | None = None
        self.begin_session()

    def begin_session(self) -> None:
        """An agent that has not learnt anything yet."""
        self._refusing: str | None = None
        self._learnt: set[str] = set()

    def __call__(self, request: LabRequest) -> Say:
        self._number += 1
        text = json.dumps(request.json, ensure_ascii=False)
        self._look(request, text)
        tokens = len(text.encode()) // 4
        asked = Asked(self._number, request, tokens, self._rng, self.turn, self.deepseek)
        self.turn.asked.append(asked)
        asked.kind, said = self._kinds(asked)
        self.summary = asked if asked.is_summary else None
        if self.turn.hook is not None:
            self.turn.hook(asked)
        return said

    def refuses(self, what: str) -> None:
        """Said by a kind: the next request is to be without it, and all later ones. A field is named as `/field`."""
        self._refusing = what

    def _look(self, request: LabRequest, text: str) -> None:
        if strays := marks(text) - self.allowed:
            self._report(f"request {self._number} carries text of answers that were given up: {strays}")
        if self.key not in str(request.headers):
            self._report(f"request {self._number} does not carry the key")
        carried = {f"/{name}" for name in request.fields}
        carried |= {IMAGES} if carries_images(request.fields) else set()
        carried |= {REASONING} if carries_reasoning(request.fields) else set()
        if self._refusing is not None and self._refusing not in carried:
            self._learnt.add(self._refusing)
        self._refusing = None
        if again := self._learnt & carried:
            self._report(f"request {self._number} carries what was refused: {again}")


def whole(text: str) -> tuple[Piece, ...]:
    """A text in one piece."""
    return (TextPiece(text),)
