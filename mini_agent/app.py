"""The composition root: builds the parts and joins them, nothing else.

Heavy rooms (httpx with its back end, the TLS context, tenacity, the tools) are reached only through `warm`, which a
front end runs in a thread once its prompt is up; the start loads none of them.
"""

import asyncio
import contextlib
import importlib
import os
import platform
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from mini_agent import __version__
from mini_agent.core.errors import ConfigError
from mini_agent.core.events import AttemptEnded
from mini_agent.core.messages import Message
from mini_agent.core.permission import Approve
from mini_agent.models.base import Streamer
from mini_agent.record import records, sessions
from mini_agent.record.journal import Journal
from mini_agent.settings import Settings
from mini_agent.ui.flow import AnswerText, NewText
from mini_agent.ui.ports import Facts, Queued, Resumed, SessionPort

LAB_PORT = 8417
"""Where the lab server listens unless another port is given."""

Opener = Callable[[Approve, Queued], SessionPort]


class Start(NamedTuple):
    """What a session starts with.

    read: reads the settings again, for a key that was changed meanwhile. secrets: must not be written down; shared with
    whoever writes, because there may be more of them.
    """

    settings: Settings
    read: Callable[[], Settings]
    journal: Journal
    secrets: list[str]
    messages: tuple[Message, ...] = ()
    is_interrupted: bool = False
    resumed: Resumed | None = None
    notices: tuple[str, ...] = ()


def begin(settings: Settings, read: Callable[[], Settings]) -> Start:
    """A session of its own."""
    path = sessions.journal_path(settings.state, settings.folder, settings.run)
    header = records.Header(**_header(settings, settings.run))
    secrets = [*settings.secrets]
    return Start(settings, read, Journal(path, header, secrets=secrets, later=_later), secrets)


def resume(settings: Settings, read: Callable[[], Settings], wanted: str | None) -> Start:
    """A session that goes on: the one whose id begins with `wanted`, or the last of this folder.

    Raises ConfigError where there is none, where it can't be read, and where another process has it open.
    """
    if wanted is not None:
        path = sessions.find(settings.state, settings.folder, wanted)
    elif (last := sessions.latest(settings.state, settings.folder)) is not None:
        path = last
    else:
        raise ConfigError("there is no session in this folder to go on with: leave -c out")
    header = records.Resumed(**_header(settings, path.stem))
    sessions.check_format(path)
    secrets = [*settings.secrets]
    journal = Journal.resume(path, header, secrets=secrets, later=_later)
    loaded = sessions.load(path)
    state = loaded.state
    resumed = Resumed(
        id=path.stem,
        turns=state.turns,
        prompt=state.prompt,
        answer="" if state.is_waiting and not state.is_interrupted else state.text,
        is_waiting=state.is_waiting,
        is_interrupted=state.is_waiting and (state.is_interrupted or not state.has_ended),
        is_open=state.is_waiting and not (state.has_ended and state.reason == "cancelled"),
    )
    skipped = f"lines of the session's journal that can't be read and are left out: {loaded.skipped}"
    return Start(
        settings,
        read,
        journal,
        secrets,
        loaded.messages,
        state.is_interrupted,
        resumed,
        (skipped,) if loaded.skipped else (),
    )


def _header(settings: Settings, session: str) -> dict[str, Any]:
    return {
        "t": time.time(),
        "id": session,
        "folder": str(settings.folder),
        "version": __version__,
        "model": settings.model,
        "profile": settings.profile.name,
    }


def _later(delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(delay_s, callback)


def facts(start: Start) -> Facts:
    """What a front end says of the session before there is one."""
    settings = start.settings
    debug = [f"debug log: {settings.debug_log}"] if settings.debug_log else []
    return Facts(
        version=__version__,
        profile=settings.profile.name,
        model=settings.model,
        mode=settings.mode,
        folder=str(settings.folder),
        key_env=next(iter(settings.profile.key_env), ""),
        stream=settings.stream,
        notices=(*start.notices, *settings.notices, *debug),
        resumed=start.resumed,
        reasoning=settings.reasoning,
        frame_rate=settings.frame_rate,
        home=settings.home,
        history=start.journal.path.parent / "history",
    )


def warm(start: Start, *, watched: bool) -> Opener:
    """Loads what the first request and the first answer need; returns what opens a session.

    watched: whether a screen shows the stream, so that its reads are paced. Takes a while, and may run in any thread.
    Raises ConfigError.
    """
    # httpx brings its command line along, and that rich, pygments and click: 6 MB and a tenth of a second. It does without.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None is how an import is refused
    # The one place where slow imports are put off: see the list of what the start may load in tests/test_start.py.
    from mini_agent.agent.asking import TurnSettings  # noqa: PLC0415
    from mini_agent.agent.handover import HandOver  # noqa: PLC0415
    from mini_agent.agent.loop import Agent  # noqa: PLC0415
    from mini_agent.agent.prompt import system_prompt  # noqa: PLC0415
    from mini_agent.agent.tools import Registry, ToolContext, discover  # noqa: PLC0415
    from mini_agent.core.history import Conversation  # noqa: PLC0415
    from mini_agent.record.debug import DebugLog  # noqa: PLC0415
    from mini_agent.session import Session  # noqa: PLC0415
    from mini_agent.workspace.files import Files  # noqa: PLC0415
    from mini_agent.workspace.spill import Spill  # noqa: PLC0415

    settings = start.settings
    rng = random.Random(settings.seed)  # noqa: S311  jitter and demo faults, nothing secret
    endpoint = _demo(settings, rng) if settings.is_demo else _http(settings, watched=watched)
    tools, problems = discover()
    registry = Registry(tools)
    handover = HandOver()
    spill = Spill(settings.state / "spill", start.journal.id)
    traced = _traced(endpoint.model, settings, rng, handover.put_now)

    def open_session(approve: Approve, queued: Queued) -> SessionPort:
        conversation = Conversation(start.messages, is_interrupted=start.is_interrupted)
        agent = Agent(
            traced,
            registry,
            conversation,
            approve,
            context=ToolContext(
                Files(settings.folder, home=settings.home, readable=spill.folder),
                environment=settings.environment,
                spill=spill,
            ),
            settings=TurnSettings(
                model=settings.model,
                system=system_prompt(
                    folder=str(settings.folder),
                    system=platform.system(),
                    date=f"{datetime.now().astimezone():%Y-%m-%d}",
                ),
                mode=settings.mode,
                max_steps=settings.max_steps,
                max_tokens=settings.max_tokens,
                effort=settings.effort,
                stream=settings.stream,
                window=settings.profile.facts(settings.model).window,
            ),
            handover=handover,
            queued=queued,
            new_key=partial(_new_key, start, endpoint),
        )
        log = DebugLog(settings.debug_log, start.secrets) if settings.debug_log else None
        return Session(
            agent,
            traced,
            conversation,
            settings.profile,
            endpoint.models,
            problems,
            journal=start.journal,
            log=log,
        )

    return open_session


class _Endpoint(NamedTuple):
    """A model and what can be done at its place. use_key: takes another key; whether it is another one."""

    model: Streamer
    use_key: Callable[[str], bool]
    models: Callable[[], Awaitable[Sequence[str]]]


def _new_key(start: Start, endpoint: _Endpoint) -> bool:
    """Reads the key once more from where it came; whether it is another one now."""
    try:
        now = start.read()
    except ConfigError:
        return False  # it was right when the program began, and is what is wrong now
    mine, theirs = start.settings.profile, now.profile
    if (mine.name, mine.api, mine.base_url) != (theirs.name, theirs.api, theirs.base_url):
        return False  # another vendor's key is none of this one's business
    start.secrets.extend(now.secrets)
    return endpoint.use_key(now.api_key)


def _traced(
    model: Streamer, settings: Settings, rng: random.Random, sink: Callable[[AttemptEnded], None]
) -> Streamer:
    """The model with what is wrapped around it: trace(retry(model))."""
    from mini_agent.models.policy import DEFAULT, PATIENT  # noqa: PLC0415  a part of `warm`, as the next
    from mini_agent.models.retrying import RetryingModel  # noqa: PLC0415
    from mini_agent.models.traced import TracedModel  # noqa: PLC0415

    named = PATIENT if settings.retry == "patient" else DEFAULT
    overrides = {name: getattr(settings, name) for name in ("max_retries", "base_s", "cap_s", "doom")}
    policy = replace(named, **{name: value for name, value in overrides.items() if value is not None})
    retrying = RetryingModel(model, policy, rng=rng)
    return TracedModel(retrying, sink, total_s=settings.profile.deadlines.total_s)


def _demo(settings: Settings, rng: random.Random) -> _Endpoint:
    from mini_agent.models.demo import DemoModel  # noqa: PLC0415  a part of `warm`

    async def models() -> Sequence[str]:
        return [settings.model]

    model = DemoModel(
        delay_ms=settings.delay_ms, fail_rate=settings.fail_rate, cut_rate=settings.cut_rate, rng=rng
    )
    return _Endpoint(model, lambda _: False, models)


# What httpcore loads with its first request: a sixtieth of a second between Enter and the request.
_AT_FIRST_REQUEST = ("anyio.lowlevel", "anyio.streams.tls", "anyio._backends._asyncio")


def _http(settings: Settings, *, watched: bool) -> _Endpoint:
    from mini_agent.models.http import HttpModel  # noqa: PLC0415  a part of `warm`
    from mini_agent.wire.transport import Slots, Transport  # noqa: PLC0415

    for module in _AT_FIRST_REQUEST:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    transport = Transport(
        connect_s=settings.profile.deadlines.connect_s,
        pace_s=1 / settings.frame_rate if watched else None,
        ca_file=settings.profile.ca_file,
        slots=Slots(
            asyncio.Semaphore(settings.streams_per_client), asyncio.Semaphore(settings.streams_per_process)
        ),
    )
    model = HttpModel(settings.profile, settings.api_key, transport, user_agent=f"mini-agent/{__version__}")
    return _Endpoint(model, model.use_key, model.models)


def serve_lab(port: int, faults: Sequence[str], *, strict: bool, deepseek: bool) -> None:
    """The lab server, its log on standard output, until Ctrl+C. Raises ConfigError."""
    from mini_agent.lab.serve import serve  # noqa: PLC0415  loaded where its command runs, by nothing else

    def say(line: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads it any more: no reason to stop serving
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    asyncio.run(serve(port, faults, say, files=Path.cwd(), strict=strict, deepseek=deepseek))


def list_paths(settings: Settings) -> Iterable[Sequence[str]]:
    """What `@` completes. For a thread."""
    # Loaded with the first `@`: it brings the rules of .gitignore along.
    from mini_agent.workspace.walk import Walk, global_excludes  # noqa: PLC0415

    root = Path(os.path.realpath(settings.folder))
    return Walk(root, excludes=global_excludes(settings.environment, root))


def _answers(theme: str) -> NewText:
    from mini_agent.ui.answer import MarkdownText  # noqa: PLC0415  a part of the warm-up: it loads the renderer

    return partial(MarkdownText, theme=theme)


class WarmUp:
    """`warm` in one thread, started when the prompt is up."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._opener: Future[Opener] = Future()
        self._started = False
        self._new_text: NewText | None = None

    def new_text(self, width: int, height: int) -> AnswerText:
        """What an answer is shown by; there once a session was opened."""
        if self._new_text is None:
            raise RuntimeError("an answer before there was a session")
        return self._new_text(width, height)

    def start(self) -> None:
        """Starts it, once."""
        if not self._started:
            self._started = True
            # A daemon: whoever leaves at once does not wait for it.
            threading.Thread(target=self._run, name="warm-up", daemon=True).start()

    def _run(self) -> None:
        self._opener.set_running_or_notify_cancel()  # so that whoever leaves meanwhile can't cancel it
        try:
            opener = warm(self._start, watched=True)
            self._new_text = _answers(self._start.settings.theme)
            self._opener.set_result(opener)
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            self._opener.set_exception(error)

    async def open_session(self, approve: Approve, queued: Queued) -> SessionPort:
        """A session, when everything is there. Raises ConfigError."""
        self.start()
        opener = self._opener
        try:
            return (await asyncio.wrap_future(opener))(approve, queued)
        except ConfigError:
            self._opener, self._started = (
                Future(),
                False,
            )  # what was wrong may be mended when it is asked for again
            raise
