"""When a program is killed, and what the model says to it until then."""

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mini_agent.core.answers import Answer, Piece, call_pieces, text_pieces
from mini_agent.core.messages import Usage
from mini_agent.lab.replies import error
from mini_agent.lab.requests import LabRequest
from mini_agent.lab.server import Faulty, LabThread, Say

OVERFLOW = {
    "error": {
        "message": "This model's maximum context length is 1000 tokens. However, your messages resulted in 2000 tokens.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
}


class Weather(NamedTuple):
    """What a process meets. at: which of its requests has the fault. pause_s: between two events of every answer.

    fault: in the words of the lab's faults, or `overflow`. summary: the fault of a request for a summary. calls: the share
    of answers with calls. words: how long the others are at most.
    """

    at: int = 0
    fault: str = ""
    summary: str = ""
    pause_s: float = 0.0
    calls: float = 0.5
    words: int = 12


class Model:
    """The script of a lab server: each answer and each call has a number of its own."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._number = 0
        self._guard = threading.Lock()
        self.begin(Weather(calls=0))

    def begin(self, weather: Weather) -> None:
        """Another process asks from now on."""
        with self._guard:
            self._weather = weather
            self._asked = 0
            self.summaries = 0

    def __call__(self, request: LabRequest) -> Say:
        with self._guard:
            self._number += 1
            self._asked += 1
            weather = self._weather
            if b"<record>" in request.body:
                self.summaries += 1
                return Faulty(self._text(weather.words), weather.summary or "ok")
            if self._asked == weather.at and weather.fault == "overflow":
                return error(400, OVERFLOW)
            speaks = self._random.random() >= weather.calls
            answer = self._text(weather.words) if speaks else self._calls()
            pause = f" pause={weather.pause_s}" if weather.pause_s else ""
            return Faulty(answer, (weather.fault if self._asked == weather.at else "ok") + pause)

    def _text(self, words: int) -> Answer:
        said = " ".join(f"word-{self._number}-{place}" for place in range(self._random.randint(1, words)))
        return Answer(tuple(text_pieces(said)), usage=Usage(10, 10))

    def _calls(self) -> Answer:
        pieces: list[Piece] = (
            [*text_pieces(f"I do step {self._number}. ")] if self._random.random() < 0.5 else []
        )
        for place in range(self._random.choice((1, 1, 2, 3))):
            token = f"call-{self._number}-{place}"
            name, arguments = self._random.choice(
                (
                    ("slow_note", {"token": token}),
                    ("slow_note", {"token": token}),
                    ("write_file", {"path": f"{token}.txt", "content": token}),
                    ("list_dir", {"path": "."}),
                )
            )
            pieces += call_pieces(place, token, name, json.dumps(arguments))
        return Answer(tuple(pieces), "tool_use", Usage(10, 10))


class Scene:
    """What can be seen of a process from outside, from its start on.

    home: the program's own folder. workspace: where it works. output: the file that it writes to.
    """

    def __init__(self, lab: LabThread, model: Model, home: Path, workspace: Path, output: Path) -> None:
        self._lab = lab
        self._model = model
        self._home = home
        self._notes = workspace / "notes.txt"
        self._output = output
        self._requests_before = len(lab.requests)
        self._journal_before = self._journal_size()
        self._begun_before = len(self.begun)

    @property
    def journal(self) -> Path | None:
        """The only one with something in it; None where there is none yet."""
        journals = self._home.glob("sessions/*/*.jsonl")
        return next((journal for journal in journals if journal.stat().st_size), None)

    @property
    def requests(self) -> list[LabRequest]:
        return self._lab.requests[self._requests_before :]

    @property
    def summaries(self) -> int:
        return self._model.summaries

    @property
    def begun(self) -> list[str]:
        """The tokens of the slow calls that have begun, of all processes so far."""
        if not self._notes.exists():
            return []
        lines = self._notes.read_text(encoding="utf-8").splitlines()
        return [line.removeprefix("began ") for line in lines if line.startswith("began ")]

    @property
    def begun_here(self) -> int:
        return len(self.begun) - self._begun_before

    @property
    def journalled(self) -> int:
        """Bytes that the journal has grown by."""
        return self._journal_size() - self._journal_before

    @property
    def lines(self) -> list[bytes]:
        """The whole lines that came out."""
        return self._output.read_bytes().split(b"\n")[:-1]

    def has_said(self, kind: str) -> bool:
        """Whether an event of a type came out."""
        return any(b'"type":"%b"' % kind.encode() in line for line in self.lines)

    def _journal_size(self) -> int:
        journal = self.journal
        return 0 if journal is None else journal.stat().st_size


Until = Callable[[Scene], bool]


class Moment(NamedTuple):
    """When a process is killed. make: what it meets, and what has to be seen then. resumed: only of one that goes on."""

    name: str
    make: Callable[[random.Random], tuple[Weather, Until]]
    resumed: bool = False


def _before_the_first_byte(rng: random.Random) -> tuple[Weather, Until]:
    at = rng.randint(1, 3)
    return Weather(at, "stall", calls=1), lambda scene: len(scene.requests) >= at


def _in_an_answer(rng: random.Random) -> tuple[Weather, Until]:
    size = rng.randint(1, 6_000)
    return Weather(pause_s=0.03), lambda scene: scene.journalled >= size


def _by_what_came_out(rng: random.Random) -> tuple[Weather, Until]:
    count = rng.randint(1, 90)
    return Weather(pause_s=0.03, calls=0.2, words=60), lambda scene: len(scene.lines) >= count


def _in_a_tool(rng: random.Random) -> tuple[Weather, Until]:
    count = rng.randint(1, 3)
    return Weather(calls=1), lambda scene: scene.begun_here >= count


def _in_a_wait(rng: random.Random) -> tuple[Weather, Until]:
    at = rng.randint(1, 2)
    return Weather(at, "status=503 retry-after=5", calls=1), lambda scene: scene.has_said("retrying")


def _in_a_summary(rng: random.Random) -> tuple[Weather, Until]:
    fault = rng.choice(("stall", "stall@1", "stall@5"))
    return Weather(rng.randint(2, 3), "overflow", fault, calls=1), lambda scene: scene.summaries > 0


def _after_a_summary(rng: random.Random) -> tuple[Weather, Until]:
    return Weather(rng.randint(2, 3), "overflow", calls=1, pause_s=0.02), lambda scene: scene.has_said(
        "compacted"
    )


MOMENTS = (
    Moment("at once", lambda _: (Weather(), lambda scene: True)),
    Moment("before the first byte", _before_the_first_byte),
    Moment("in an answer, by the journal", _in_an_answer),
    Moment("in an answer, by what came out", _by_what_came_out),
    Moment("in a tool", _in_a_tool),
    Moment("in a wait", _in_a_wait),
    Moment("in a summary", _in_a_summary),
    Moment("after a summary", _after_a_summary),
    Moment("between turns", lambda _: (Weather(calls=0.3), lambda scene: scene.has_said("turn_finished"))),
    Moment("while resuming", lambda _: (Weather(), lambda scene: scene.journalled > 0), resumed=True),
)
