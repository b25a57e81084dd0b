"""A shell command as a child process: in a group of its own, without a terminal, read piece by piece, ended for certain.

The command runs in a session of its own, so that a Ctrl+C in the terminal reaches the program only, and so that all it
started can be ended together. A process that leaves the session on purpose (setsid) is out of reach.
"""

import asyncio
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mini_agent.core.errors import ToolError
from mini_agent.core.surrogates import join_surrogates

_HELD = 1 << 18
"""Bytes held for the reader; beyond them the child has to wait."""
_GRACE_S = 0.25
"""How long nothing may come, once the shell has ended, until what keeps the pipe open is taken for a background process."""
_AFTERWARDS = 2 * _HELD
"""Bytes read once the shell has ended: more than pipe and buffer can have held is a background process's."""
_REAP_S = 2.0

if sys.platform == "win32":
    _KILL = signal.SIGTERM  # never sent: there the whole tree is ended by its process id
else:
    _KILL = signal.SIGKILL


class Child(asyncio.SubprocessProtocol):
    """A running command, made by `start`. Whoever has it calls `close` in the end, after `kill` where it may still run.

    over: no more output will come. left_running: something in the background still holds the pipe.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.left_running = False
        self._exited: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None
        self._news = asyncio.Event()
        self._held = bytearray()
        self._ended = False
        self._give_up_at = math.inf
        self._afterwards = 0

    @property
    def over(self) -> bool:
        return not self._held and self._exited.done() and (self._ended or self.left_running)

    @property
    def exit_code(self) -> int | None:
        """As subprocess has it: negative is the number of the signal that ended it; None while it runs."""
        return None if self._transport is None else self._transport.get_returncode()

    async def read(self, until: float) -> bytes:
        """The output that has come, b"" where none does until `until` (in the loop's time) or none will."""
        if not self._held and not self.over:
            self._news.clear()
            give_up_at = self._give_up_at
            try:
                async with asyncio.timeout_at(min(until, give_up_at)):
                    await self._news.wait()
            except TimeoutError:
                self.left_running = give_up_at <= until
        return self._take()

    def _take(self) -> bytes:
        data = bytes(self._held)
        self._held.clear()
        if self._exited.done():
            self._afterwards += len(data)
            if data:
                self._give_up_at = asyncio.get_running_loop().time() + _GRACE_S
            if self._afterwards > _AFTERWARDS:
                self.left_running = True
        if not self.left_running:
            self._pipe_reading(on=True)
        return data

    def terminate(self) -> None:
        """Asks the command and all it started to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the command and all it started."""
        self._signal(_KILL)

    async def close(self) -> None:
        """Waits a moment for the end of a command that was killed, and lets go of the pipe."""
        try:
            await asyncio.wait({self._exited}, timeout=_REAP_S)
        finally:
            if self._transport is not None:
                self._transport.close()

    def _signal(self, number: signal.Signals) -> None:
        """To the whole group, which outlives its leader; nothing where it is gone."""
        if self._transport is None:
            return
        pid = self._transport.get_pid()
        if sys.platform == "win32":
            _kill_tree(pid)
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)

    def _pipe_reading(self, *, on: bool) -> None:
        pipe = self._transport.get_pipe_transport(1) if self._transport is not None else None
        if isinstance(pipe, asyncio.ReadTransport):
            (pipe.resume_reading if on else pipe.pause_reading)()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._held += data
        if len(self._held) > _HELD:
            self._pipe_reading(on=False)
        self._news.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._ended = True
        self._news.set()

    def process_exited(self) -> None:
        if not self._exited.done():
            self._exited.set_result(None)
        self._give_up_at = asyncio.get_running_loop().time() + _GRACE_S
        self._news.set()


async def start(command: str, folder: Path, environment: Mapping[str, str]) -> Child:
    """Starts `command` in a shell. Raises ToolError where that can't be done.

    environment: the child's whole environment.
    """
    _require_folder(folder)
    starting = asyncio.ensure_future(_spawn(join_surrogates(command), folder, environment))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # It is half-way there: let it come into being, so that it can be ended whole.
        await asyncio.wait({starting})
        if starting.exception() is None:
            starting.result().kill()
            await starting.result().close()
        raise
    except (OSError, ValueError) as error:
        raise ToolError(f"The command could not be started: {error}.") from error


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise ToolError(f"The workspace folder {folder} is gone, so no command can run in it.")


async def _spawn(command: str, folder: Path, environment: Mapping[str, str]) -> Child:
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        _, child = await loop.subprocess_shell(
            Child,
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW,
        )
    else:
        _, child = await loop.subprocess_exec(
            Child,
            _shell(environment),
            "-c",
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            start_new_session=True,
        )
    return child


def _shell(environment: Mapping[str, str]) -> str:
    """bash where there is one, else sh; never one that lies in the working directory."""
    bash = shutil.which("bash", path=environment.get("PATH") or os.defpath)
    return bash if bash is not None and Path(bash).is_absolute() else "/bin/sh"


def _kill_tree(pid: int) -> None:
    """Windows has no such groups. The whole path, because a taskkill in the working directory is not the system's."""
    taskkill = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "taskkill.exe")
    with suppress(OSError):
        subprocess.run(  # noqa: S603  fixed program, and a number
            [taskkill, "/T", "/F", "/PID", str(pid)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
