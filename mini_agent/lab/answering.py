"""What the lab server answers: its script's word, in the family that is asked, with every fault that is wanted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mini_agent.core.answers import Answer
from mini_agent.core.errors import ConfigError
from mini_agent.core.scripts import demo_answer
from mini_agent.lab.families import FAMILIES, failed, play
from mini_agent.lab.fault_words import Named, Read, in_order, parse, plan
from mini_agent.lab.faults import apply, omissions
from mini_agent.lab.messages import thinks
from mini_agent.lab.playing import Ask, with_thought
from mini_agent.lab.replies import Reply, error, json_reply
from mini_agent.lab.requests import LabRequest
from mini_agent.lab.responses import wants_encrypted


@dataclass(frozen=True, slots=True)
class Faulty:
    """One answer of a script with faults, in the words of `fault_words`."""

    say: Reply | Answer
    faults: str


Say = Reply | Answer | Faulty
"""One answer of a script. An `Answer` goes out in the family that is asked, as a stream or as one JSON object."""

Script = Sequence[Say] | Callable[[LabRequest], Say]
"""Successive answers, whatever is asked; or a function that makes each. A request after the last one gets a 400, which no
client asks again: a test sees at once that one came too many."""

MODEL = "lab"

_MODELS: dict[str, Any] = {
    "object": "list",
    "data": [
        {
            "id": MODEL,
            "object": "model",
            "type": "model",
            "display_name": "The lab server's demo model",
            "created": 0,
            "created_at": "1970-01-01T00:00:00Z",
            "owned_by": "mini-agent",
        }
    ],
    "has_more": False,
    "first_id": MODEL,
    "last_id": MODEL,
}
"""The list of models, as all families read it."""


def demo_script(request: LabRequest) -> Say:
    """What the demo model would say; the script of a server that was given none."""
    if request.api is not None:
        asked = FAMILIES[request.api].request(request.fields)
        return msgspec.structs.replace(demo_answer(asked), model=asked.model or MODEL)
    if request.method == "GET" and request.path.rstrip("/").endswith("/models"):
        return json_reply(_MODELS)
    there = ", ".join(f"POST {family.path}" for family in FAMILIES.values())
    return error(
        404, f"the lab server has nothing at {request.method} {request.path}, only {there} and GET /models"
    )


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, and the words of the faults it has."""

    reply: Reply
    faults: tuple[str, ...] = ()


class Answering:
    """Makes the reply to each request.

    say: the script's word for a request and its number. The other arguments are those of `LabServer`. Raises ConfigError
    where a plan is wrong. failures: exceptions of the script.
    """

    def __init__(
        self,
        say: Callable[[LabRequest, int], Say],
        faults: Sequence[str],
        *,
        files: Path | None,
        deepseek: bool,
    ) -> None:
        self._say = say
        self._plans = [plan(spec, _read) for spec in faults]
        self._read = _from_folder(files)
        self._deepseek = deepseek
        self._posted = 0
        self.failures: list[Exception] = []

    def answer(self, request: LabRequest, number: int, refusal: str = "") -> Answered:
        """number: the request's, from 1. refusal: why it is not answered but refused; "" where it is not."""
        named: list[Named] = []
        try:
            named = self._named(request, number)
            said = self._say(request, number)
            if isinstance(said, Faulty):
                named += parse(said.faults, _read).drawn(number)
                said = said.say
            if refusal:
                said = failed(400, refusal, request.api or "chat")
            reply = self._spoiled(said, request, named)
        except ConfigError as problem:  # in the faults that a request asks for, or a script
            return Answered(error(400, f"{problem}"))
        except Exception as problem:  # noqa: BLE001  a mistake in somebody's script is told to whoever wrote it
            self.failures.append(problem)
            return Answered(error(400, f"the lab server's script failed: {problem!r}"))
        return Answered(reply, tuple(each.text for each in named))

    def _named(self, request: LabRequest, number: int) -> list[Named]:
        """The faults that the plans name, and the request itself. Raises ConfigError."""
        named: list[Named] = []
        if request.method == "POST":
            self._posted += 1
            for each in self._plans:
                named += each.at(self._posted)
        for spec in request.faults:
            named += parse(spec, self._read).drawn(number)
        return named

    def _spoiled(self, said: Reply | Answer, request: LabRequest, named: Sequence[Named]) -> Reply:
        faults = in_order(named)
        api = request.api or "chat"
        if isinstance(said, Answer):
            if self._deepseek if api == "chat" else api == "messages" and thinks(request.fields):
                said = with_thought(said)
            ask = Ask(request.streams, request.tag, wants_encrypted(request.fields), omissions(faults))
            said = play(said, api, ask)
        if not isinstance(said, Reply):
            raise TypeError(f"a script says Reply, Answer or Faulty, not {type(said).__name__}")
        return apply(said, faults, api)


def _read(name: str) -> bytes:
    """The bytes of a file that the server's owner named. Raises ConfigError."""
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ConfigError(f"bytes={name}: the file can't be read: {reason}") from None


def _from_folder(folder: Path | None) -> Read:
    """Reads the files that a request may name: whoever can send one must not be able to read any other."""

    def read(name: str) -> bytes:
        if folder is None:
            raise ConfigError(f"bytes={name}: this server has no folder for files that requests may name")
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise ConfigError(f"bytes={name}: a request may name files of the server's folder only")
        return _read(str(path))

    return read
