"""The real program, killed again and again, and what it makes of it when it goes on.

Each chain is one session: a process is killed, the next one resumes its journal and is killed as well, until one is let
be. Nothing is killed by the clock, but when something is seen: of the lab, of the journal, of what came out.
"""

import json
import os
import random
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kill_moments import MOMENTS, Model, Moment, Scene, Until, Weather
from programs import CONSOLE_SCRIPT

from mini_agent.core.messages import Message, Text, ToolResult
from mini_agent.lab.server import LabThread
from mini_agent.record import sessions

PLUGIN = Path(__file__).parent / "kill_plugin"
FAMILIES = ("chat", "responses", "messages")

LAG_S = 0.5
"""Pieces of text reach the journal within 0.25 s of being shown; the rest is for a machine with more to do."""

LONGEST_S = 60
"""A process that is neither killed nor done by then hangs."""

DELTAS = ("channel_token", "tool_call_delta", "tool_output")
"""Pieces, which the journal holds joined."""

Event = dict[str, Any]


class KillError(AssertionError):
    """What should not be."""


def kills(
    count: int,
    seed: int,
    folder: Path,
    moments: Sequence[Moment] = MOMENTS,
    program: Sequence[str] = CONSOLE_SCRIPT,
) -> Counter[str]:
    """Kills so many processes; returns how many at which moment. folder: an empty one. Raises KillError."""
    rng = random.Random(seed)
    left = _deck(moments, rng)
    done: Counter[str] = Counter()
    number = 0
    while done.total() < count:
        length = min(rng.randint(2, 4), count - done.total())
        chain = _Chain(folder / str(number), rng, FAMILIES[number % len(FAMILIES)], program)
        try:
            done += chain.run(list(islice(left, length)))
        except AssertionError as error:
            raise KillError(f"seed {seed}, {chain.told}: {error}") from error
        number += 1
    return done


def _deck(moments: Sequence[Moment], rng: random.Random) -> Iterator[Moment]:
    while True:
        yield from rng.sample(moments, len(moments))


class _Chain:
    """One session and its processes. told: what happened to it so far."""

    def __init__(self, folder: Path, rng: random.Random, api: str, program: Sequence[str]) -> None:
        self.told = api
        self._program = program
        self._random = rng
        self._home, self._workspace, plugins = folder / "home", folder / "work", folder / "plugins"
        for each in (self._home, self._workspace):
            each.mkdir(parents=True)
        _register(plugins)
        self._environment = _environment(self._home, plugins, api)
        self._output = folder / "out.jsonl"
        self._model = Model(rng.randrange(10**6))

    def run(self, moments: list[Moment]) -> Counter[str]:
        """Kills a process at each moment, then lets one go on to its end."""
        done: Counter[str] = Counter()
        with LabThread(self._model) as lab:
            self._environment["MINI_AGENT_BASE_URL"] = lab.base_url
            for moment in moments:
                if moment.resumed and not any(self._home.glob("sessions/*/*.jsonl")):
                    self.told += ", at first"
                    self._process(lab, Weather(), None)
                for _ in range(20):
                    self.told += f", {moment.name}"
                    if self._process(lab, *moment.make(self._random)):
                        done[moment.name] += 1
                        break
                    self.told += " (came too late)"
            self.told += ", at last"
            self._process(lab, Weather(calls=0.3), None)
        return done

    def _process(self, lab: LabThread, weather: Weather, until: Until | None) -> bool:
        """One process; whether it was killed. until: when; None: it is not."""
        self._model.begin(weather)
        self._output.write_bytes(b"")
        scene = Scene(lab, self._model, self._home, self._workspace, self._output)
        before = self._history(scene)
        goes_on = ["-c", "-p", "go on"] if scene.journal is not None else ["-p", "begin"]
        errors = self._output.with_suffix(".err")
        with (
            self._output.open("wb") as output,
            errors.open("wb") as said,
            subprocess.Popen(
                [*self._program, "--mode", "auto", "--output-format", "stream-json", *goes_on],
                cwd=self._workspace,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=said,
            ) as process,
        ):
            killed = _killed(process, scene, until)
        if not killed:
            told = errors.read_text(encoding="utf-8", errors="replace")
            assert process.returncode == 0, f"exit code {process.returncode}: {told}"
        self._check(lab, scene, before)
        return killed

    def _history(self, scene: Scene) -> tuple[Message, ...]:
        return () if scene.journal is None else sessions.load(scene.journal).messages

    def _check(self, lab: LabThread, scene: Scene, before: tuple[Message, ...]) -> None:
        assert lab.violations == []
        if scene.requests:
            asked = "\n".join(_strings(scene.requests[0].json))
            for text in _texts(before):
                assert text in asked, f"the first request lacks {text!r}"
        twice = [token for token, times in Counter(scene.begun).items() if times > 1]
        assert not twice, f"run twice: {twice}"
        if scene.journal is None:
            assert not scene.requests, "something was asked that is not in the journal"
            return
        records = _decoded(scene.journal.read_bytes().split(b"\n"))
        started = Counter(record["call_id"] for record in records if record["type"] == "tool_started")
        assert set(started.values()) <= {1}, f"started twice: {started}"
        assert set(scene.begun) <= started.keys(), "a tool ran that the journal has not started"
        shown = _decoded(scene.lines)
        _expect_written(shown, records)
        if not any(record["type"] == "compacted" for record in records):
            history = "\n".join(_texts(self._history(scene)))
            for text in _said(shown):
                assert text.strip() in history, f"{text!r} came out, and is not in the history"


def _killed(process: subprocess.Popen[bytes], scene: Scene, until: Until | None) -> bool:
    """Waits for the moment or the end; whether the process was killed."""
    give_up = time.monotonic() + LONGEST_S
    while process.poll() is None:
        if until is not None and until(scene):
            process.kill()
            return process.wait() < 0
        if time.monotonic() > give_up:
            process.kill()
            raise KillError(f"it hangs: {scene.lines[-3:]}")
        time.sleep(0.002)
    return False


def _register(folder: Path) -> None:
    """Makes `folder` one that holds a package with a tool, as an installed one would be."""
    about = folder / "slow_note-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-note\nVersion: 1\n", encoding="utf-8")
    entry = "[mini_agent.tools]\nslow_note = slow_note:SlowNote\n"
    (about / "entry_points.txt").write_text(entry, encoding="utf-8")


def _environment(home: Path, plugins: Path, api: str) -> dict[str, str]:
    """This process's, without anybody's settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not (name.startswith(("MINI_AGENT_", "DEMO_")) or name.endswith("_API_KEY"))
        and not name.lower().endswith("_proxy")
    }
    path = [str(plugins), str(PLUGIN), *filter(None, [kept.get("PYTHONPATH")])]
    return {
        **kept,
        "MINI_AGENT_HOME": str(home),
        "MINI_AGENT_MODEL": "m",
        "MINI_AGENT_API": api,
        "MINI_AGENT_RETRY_BASE_S": "0.01",
        "PYTHONPATH": os.pathsep.join(path),
    }


def _decoded(lines: Sequence[bytes]) -> list[Event]:
    """Events of whole lines; a last one that is torn, or empty, is none."""
    events = []
    for place, line in enumerate(lines):
        try:
            events.append(json.loads(line))
        except ValueError:
            assert place == len(lines) - 1, f"line {place + 1} is no JSON"
    return events


def _expect_written(shown: list[Event], records: list[Event]) -> None:
    """Everything that came out is in the journal; of pieces, what is older than they may wait."""
    written = {_key(record) for record in records}
    for event in shown:
        if event["type"] not in (*DELTAS, "attempt_progress"):
            assert _key(event) in written, f"it came out, and is not in the journal: {event}"
    for key, text in _pieces(_old(shown)).items():
        kept = _pieces(records)[key]
        assert kept.startswith(text), f"{text!r} came out, and the journal has {kept!r}"


def _key(event: Event) -> tuple[Any, ...]:
    return tuple(event.get(name) for name in ("type", "t", "request_id", "attempt", "call_id"))


def _old(shown: list[Event]) -> list[Event]:
    last = max((event["t"] for event in shown), default=0.0)
    return [event for event in shown if event["type"] not in DELTAS or event["t"] < last - LAG_S]


def _pieces(events: list[Event]) -> defaultdict[tuple[Any, ...], str]:
    """The texts that came in pieces, each by what it belongs to."""
    texts: defaultdict[tuple[Any, ...], str] = defaultdict(str)
    for event in events:
        match event["type"]:
            case "channel_token":
                texts[event["request_id"], event["attempt"], event["channel"]] += event["text"]
            case "tool_call_delta":
                texts[event["request_id"], event["attempt"], event["index"]] += event["arguments"]
            case "tool_output":
                texts[event["call_id"], None, None] += event["text"]
            case _:
                pass
    return texts


def _said(shown: list[Event]) -> Iterator[str]:
    """The answers that came out, and what one had said that had not come to its end."""
    partial = ""
    for event in _old(shown):
        match event["type"]:
            case "channel_token" if event["channel"] == "text":
                partial += event["text"]
            case "completed":
                partial = ""
                yield event["response"]["text"]
            case "stream_started" | "retrying" | "failed" | "attempt_ended" | "turn_finished":
                partial = ""
            case _:
                pass
    yield partial


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    """What was said in a history, and what tools gave."""
    for message in messages:
        for block in message.blocks:
            if isinstance(block, Text):
                yield block.text.strip()
            elif isinstance(block, ToolResult):
                yield block.content.strip()


def _strings(value: Any) -> Iterator[str]:
    """All texts in a decoded body."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for item in value.values():
                yield from _strings(item)
        case _:
            pass
