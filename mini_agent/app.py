"""The composition root: builds the parts and joins them, nothing else.

Heavy rooms (httpx with its back end, the TLS context, tenacity, the tools) are reached only through `warm`, which a
front end runs in a thread once its prompt is up; the start loads none of them.
"""

import asyncio
import contextlib
import platform
import random
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from mini_agent import __version__
from mini_agent.core.errors import ConfigError
from mini_agent.core.permission import Approve
from mini_agent.models.base import Streamer
from mini_agent.settings import Settings
from mini_agent.ui.ports import Facts, SessionPort

LAB_PORT = 8417
"""Where the lab server listens unless another port is given."""

FRAME_S = 1 / 20
"""How often a screen is painted at most, and so how often its stream is read."""

Opener = Callable[[Approve], SessionPort]


def facts(settings: Settings) -> Facts:
    """What a front end says of the session before there is one."""
    return Facts(
        version=__version__,
        profile=settings.profile.name,
        model=settings.model,
        mode=settings.mode,
        folder=str(settings.folder),
        key_env=next(iter(settings.profile.key_env), ""),
        stream=settings.stream,
        notices=(*settings.notices, *([f"debug log: {settings.debug_log}"] if settings.debug_log else ())),
    )


def warm(settings: Settings, *, watched: bool) -> Opener:
    """Loads what the first request and the first answer need; returns what opens a session.

    watched: whether a screen shows the stream, so that its reads are paced. Takes a while, and may run in any thread.
    Raises ConfigError.
    """
    # The one place where slow imports are put off: see the list of what the start may load in tests/test_start.py.
    from mini_agent.agent.handover import HandOver  # noqa: PLC0415
    from mini_agent.agent.asking import TurnSettings  # noqa: PLC0415
    from mini_agent.agent.loop import Agent  # noqa: PLC0415
    from mini_agent.agent.prompt import system_prompt  # noqa: PLC0415
    from mini_agent.agent.tools import Registry, ToolContext, discover  # noqa: PLC0415
    from mini_agent.core.history import Conversation  # noqa: PLC0415
    from mini_agent.models.policy import DEFAULT, PATIENT  # noqa: PLC0415
    from mini_agent.models.retrying import RetryingModel  # noqa: PLC0415
    from mini_agent.models.traced import TracedModel  # noqa: PLC0415
    from mini_agent.record.debug import DebugLog  # noqa: PLC0415
    from mini_agent.session import Session  # noqa: PLC0415
    from mini_agent.workspace.files import Files  # noqa: PLC0415

    rng = random.Random(settings.seed)  # noqa: S311  jitter and demo faults, nothing secret
    model = _demo_model(settings, rng) if settings.is_demo else _http_model(settings, watched=watched)
    named = PATIENT if settings.retry == "patient" else DEFAULT
    overrides = {name: getattr(settings, name) for name in ("max_retries", "base_s", "cap_s")}
    policy = replace(named, **{name: value for name, value in overrides.items() if value is not None})
    tools, problems = discover()
    registry = Registry(tools)
    handover = HandOver()
    secrets = (settings.api_key,) if settings.api_key else ()
    traced = TracedModel(
        RetryingModel(model, policy, rng=rng), handover.put_now, total_s=settings.profile.deadlines.total_s
    )

    def open_session(approve: Approve) -> SessionPort:
        agent = Agent(
            traced,
            registry,
            Conversation(),
            approve,
            context=ToolContext(Files(settings.folder, home=settings.home), environment=settings.environment),
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
            ),
            handover=handover,
        )
        log = DebugLog(settings.debug_log, secrets) if settings.debug_log else None
        return Session(agent, traced, problems, log=log)

    return open_session


def _demo_model(settings: Settings, rng: random.Random) -> Streamer:
    from mini_agent.models.demo import DemoModel  # noqa: PLC0415  a part of `warm`

    return DemoModel(
        delay_ms=settings.delay_ms, fail_rate=settings.fail_rate, cut_rate=settings.cut_rate, rng=rng
    )


def _http_model(settings: Settings, *, watched: bool) -> Streamer:
    from mini_agent.models.http import HttpModel  # noqa: PLC0415  a part of `warm`
    from mini_agent.wire.transport import Slots, Transport  # noqa: PLC0415

    transport = Transport(
        connect_s=settings.profile.deadlines.connect_s,
        pace_s=FRAME_S if watched else None,
        ca_file=settings.profile.ca_file,
        slots=Slots(
            asyncio.Semaphore(settings.streams_per_client), asyncio.Semaphore(settings.streams_per_process)
        ),
    )
    return HttpModel(settings.profile, settings.api_key, transport, user_agent=f"mini-agent/{__version__}")


def serve_lab(port: int, faults: Sequence[str], *, strict: bool, deepseek: bool) -> None:
    """The lab server, its log on standard output, until Ctrl+C. Raises ConfigError."""
    from mini_agent.lab.serve import serve  # noqa: PLC0415  loaded where its command runs, by nothing else

    def say(line: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads it any more: no reason to stop serving
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    asyncio.run(serve(port, faults, say, files=Path.cwd(), strict=strict, deepseek=deepseek))


class WarmUp:
    """`warm` in one thread, started when the prompt is up."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opener: Future[Opener] = Future()
        self._started = False

    def start(self) -> None:
        """Starts it, once."""
        if not self._started:
            self._started = True
            # A daemon: whoever leaves at once does not wait for it.
            threading.Thread(target=self._run, name="warm-up", daemon=True).start()

    def _run(self) -> None:
        self._opener.set_running_or_notify_cancel()  # so that whoever leaves meanwhile can't cancel it
        try:
            self._opener.set_result(warm(self._settings, watched=True))
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            self._opener.set_exception(error)

    async def open_session(self, approve: Approve) -> SessionPort:
        """A session, when everything is there. Raises ConfigError."""
        self.start()
        opener = self._opener
        try:
            return (await asyncio.wrap_future(opener))(approve)
        except ConfigError:
            self._opener, self._started = (
                Future(),
                False,
            )  # what was wrong may be mended when it is asked for again
            raise
