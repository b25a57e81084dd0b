"""The states in which a turn can be stopped, and how the real program gets into each of them (product U3, R7, A1).

    with open_stage(setting, start, folder) as stage:
        for state in setting.states:
            state.enter(stage)
            stage.terminal.send(CTRL_C)
            stage.terminal.wait_for_prompt()

For `test_pty_cancel.py`, and for `bench/cancel.py`, which measures the same.
"""

import contextlib
import json
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chat import begun_call, calls, several_calls, text, thought, whole
from terminal import Terminal

from mini_agent.core.history import CANCELLED
from mini_agent.lab.replies import Hold, Reply, error, event_stream
from mini_agent.lab.requests import LabRequest
from mini_agent.lab.server import LabThread

UNANSWERED = Reply(200, {}, (Hold(),), "raw")
SILENT = event_stream(Hold())
STREAMING = event_stream(thought("let me see"), text("first line\nsecond l"), Hold())

STOPPED = f"result: Error: {CANCELLED}"

Start = Callable[..., Terminal]


class Stage:
    """The program, and a lab server that answers as `replies` says; where there is none left, never.

    held: how many requests were given an answer without an end, so that only the program can have closed their connections.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.replies: deque[Reply] = deque()
        self.held = 0
        self.lab = LabThread(self._reply)
        self.terminal: Terminal

    def ask(self, message: str, *replies: Reply, seen: str) -> None:
        """Sends a message, or what the prompt holds already, and waits until `seen` is shown once more than before."""
        self.replies.clear()  # a turn that was stopped may not have come to all of its own
        self.replies += replies
        before = self.terminal.flat.count(seen)
        self.terminal.enter("" if self.terminal.prompt == message else message)
        self.until(seen, before)

    def until(self, seen: str, before: int = 0) -> None:
        self.terminal.wait_for(lambda shown: shown.flat.count(seen) > before, what=f"{seen!r} once more")

    def asked(self, requests: int) -> None:
        """Returns once the lab has got so many requests."""
        self.lab.until(lambda server: len(server.requests) >= requests)

    def _reply(self, _: LabRequest) -> Reply:
        reply = self.replies.popleft() if self.replies else UNANSWERED
        self.held += any(isinstance(part, Hold) for part in reply.body)
        return reply


@dataclass(frozen=True, slots=True)
class State:
    """A state of a turn.

    enter: brings the program there, from the prompt, with a message of the state's name; as often as it is called. leaves:
    what of it the history keeps, as `outline` tells it.
    """

    name: str
    enter: Callable[[Stage], None]
    leaves: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """States that one process can be brought into, one after the other.

    prepare: what has to happen before, and prepared: what that leaves. env, arguments, program, rows: how it is started,
    where that matters.
    """

    name: str
    states: tuple[State, ...]
    prepare: Callable[[Stage], None] | None = None
    prepared: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    program: str = ""
    rows: int = 24


@contextlib.contextmanager
def open_stage(setting: Setting, start: Start, folder: Path) -> Iterator[Stage]:
    """The program at its first prompt, prepared. start: as the fixture of that name."""
    command = {"command": [sys.executable, "-c", setting.program]} if setting.program else {}
    stage = Stage(folder)
    with stage.lab:
        stage.terminal = start(
            *setting.arguments, lab=stage.lab, env=setting.env, rows=setting.rows, **command
        )
        stage.terminal.wait_for_prompt()
        if setting.prepare:
            setting.prepare(stage)
            stage.terminal.wait_for_prompt()
        yield stage


# Asking and answering


def _unanswered(stage: Stage) -> None:
    held = stage.held
    stage.ask("unanswered", UNANSWERED, seen="waiting for the first token")
    stage.asked(held + 1)


def _prefill(stage: Stage) -> None:
    held = stage.held
    stage.ask("prefill", SILENT, seen="waiting for the first token")
    stage.asked(held + 1)


def _reasoning(stage: Stage) -> None:
    stage.ask("reasoning", event_stream(thought("let me see\nwhat th"), Hold()), seen="what th")


def _token(stage: Stage) -> None:
    stage.ask("token", STREAMING, seen="second l")


def _arguments(stage: Stage) -> None:
    begun = begun_call("write_file", '{"path": "new.txt", "content": "half of i')
    stage.ask("arguments", event_stream(text("I write it:"), begun, Hold()), seen="● write_file")


# Waiting


def _backoff(stage: Stage) -> None:
    stage.ask("backoff", error(429, "slow down", {"retry-after": "30"}), seen="retry 1/4 in 30 s")


LOOPING = whole(*[text("Let me do it. " * 20)] * 15)


def _doom_pause(stage: Stage) -> None:
    stage.ask("doom pause", LOOPING, SILENT, seen="the model repeats itself")


def _doom_resample(stage: Stage) -> None:
    held = stage.held
    stage.ask("doom resample", LOOPING, STREAMING, seen="second l")
    assert stage.held == held + 1


PAUSING = {"DEMO_SEED": "2640"}
"""The first pauses before another answer is asked for are nearly as long as can be: a quarter of a second."""


# Compaction

LONG = "word " * 400
TOO_LONG = error(
    400,
    {
        "error": {
            "message": "This model's maximum context length is 1000 tokens, and you requested 1100 tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }
    },
)


def _converse(stage: Stage) -> None:
    stage.ask("talk", whole(text(LONG)), seen="first token")


def _compaction(stage: Stage) -> None:
    held = stage.held
    stage.ask("compaction", TOO_LONG, event_stream(text("So far"), Hold()), seen="it is summed up")
    stage.lab.until(lambda _: stage.held > held)


def _compact(stage: Stage) -> None:
    held = stage.held
    stage.ask("/compact", event_stream(text("So far"), Hold()), seen="waiting for the first token")
    stage.asked(held + 1)


# Tools

SLOW_READS = """
import asyncio
from mini_agent_tools.read_file import ReadFile
read = ReadFile.run
async def slow(self, arguments, context):
    if arguments.path.startswith("slow"):
        await asyncio.Event().wait()
    return await read(self, arguments, context)
ReadFile.run = slow
from mini_agent.cli import main
main()
"""


READ = ("slow1.txt", "done.txt", "slow2.txt")


def _reads(stage: Stage) -> None:
    for name in READ:
        (stage.folder / name).write_text("alpha\n")
    reads = several_calls(*(("read_file", {"path": name}) for name in READ))
    stage.ask("reads", reads, seen="read_file: alpha")


TICKING = "{ while :; do echo ti''ck; sleep 0.05; done; } & echo $! $$ >>pids; wait"
CHANGES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("write_file", {"path": "first.txt", "content": "alpha\n"}),
    ("run_bash", {"command": TICKING}),
    ("write_file", {"path": "never.txt", "content": "beta\n"}),
)


def _commands(stage: Stage) -> None:
    (stage.folder / "first.txt").unlink(missing_ok=True)
    ticks = stage.terminal.flat.count("tick")
    stage.ask("commands", several_calls(*CHANGES), seen="Allow?")
    stage.terminal.rest(0.55)
    stage.terminal.send("y")
    stage.until("tick", ticks)


WRITE: tuple[str, dict[str, Any]] = ("write_file", {"path": "never.txt", "content": "x"})


def _approval(stage: Stage) -> None:
    stage.ask("approval", calls(*WRITE), seen="Allow?")


# Before anything goes out

SLOW_WARM_UP = """
import pathlib, time
from mini_agent import app
warm = app.warm
def slow(*arguments, **named):
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    return warm(*arguments, **named)
app.warm = slow
from mini_agent.cli import main
main()
"""


def _opening(stage: Stage) -> None:
    stage.ask("opening", seen="starting")


OPENING = Setting("opening", (State("opening", _opening),), program=SLOW_WARM_UP)
"""The session is not there yet: nothing goes out, and the message is in the prompt again. A file `go` lets it open."""


def _called(*called: tuple[str, dict[str, Any]]) -> tuple[str, ...]:
    """Calls as `outline` tells them."""
    return tuple(f"call: {name} {json.dumps(arguments, separators=(',', ':'))}" for name, arguments in called)


PLAIN = Setting(
    "plain",
    (
        State("unanswered", _unanswered, ("user: unanswered",)),
        State("prefill", _prefill, ("user: prefill",)),
        State("reasoning", _reasoning, ("user: reasoning",)),
        State("token", _token, ("user: token", "assistant: first line\nsecond l")),
        State("arguments", _arguments, ("user: arguments", "assistant: I write it:")),
        State("backoff", _backoff, ("user: backoff",)),
        State("approval", _approval, ("user: approval", *_called(WRITE), STOPPED)),
    ),
)
DOOM = Setting(
    "doom loop",
    (
        State("doom pause", _doom_pause, ("user: doom pause",)),
        State("doom resample", _doom_resample, ("user: doom resample", "assistant: first line\nsecond l")),
    ),
    env=PAUSING,
    rows=80,
)
COMPACTION = Setting(
    "compaction",
    (State("/compact", _compact), State("compaction", _compaction, ("user: compaction",))),
    prepare=_converse,
    prepared=("user: talk", f"assistant: {LONG}"),
)
READS = Setting(
    "reads",
    (
        State(
            "reads",
            _reads,
            (
                "user: reads",
                *_called(*(("read_file", {"path": name}) for name in READ)),
                *(STOPPED, "result: alpha\n", STOPPED),
            ),
        ),
    ),
    program=SLOW_READS,
)
COMMANDS = Setting(
    "commands",
    (
        State(
            "commands",
            _commands,
            ("user: commands", *_called(*CHANGES), "result: Created first.txt: 6 bytes.", STOPPED, STOPPED),
        ),
    ),
    arguments=("--mode", "auto"),
)
SETTINGS = (PLAIN, DOOM, COMPACTION, READS, COMMANDS)
"""Every state in which a request is out, waits for its turn, or is answered."""
