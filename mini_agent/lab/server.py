"""The lab server: a loopback HTTP/1.1 server that answers as its script says, to the byte (product D2).

    async with LabServer([error(503, "busy"), Answer((TextPiece("hello"),))]) as lab:
        ...  # a client at lab.base_url
        assert len(lab.requests) == 2

It speaks chat completions, Responses and Messages, each under its path, misbehaves as the words of `fault_words` say, and
checks what it is sent by the rules of the family. `LabThread` is the same for a test that has no event loop.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mini_agent.lab.answering import Answering, Faulty, Say, Script, demo_script
from mini_agent.lab.connection import Connection, Protocol
from mini_agent.lab.replies import Reply, error
from mini_agent.lab.requests import LabRequest, MalformedError, read_request
from mini_agent.lab.rules import violations

__all__ = ["Faulty", "LabServer", "LabThread", "Say", "Script", "demo_script"]


class LabServer:
    """An async context manager; listening while it is entered. port 0: a free one.

    faults: plans for the whole server, each in the words of `fault_words`; they act on what is POSTed. files: the folder
    of the files that a request may name in a fault of its own; None: no files. strict: whether a request that breaks a
    rule gets a 400 that says so. deepseek: whether chat completions is played, and checked, as DeepSeek's thinking mode:
    every answer thinks, and wants its reasoning back. keep: how many requests are remembered, None: all. log: is given a
    line for each request and for each broken rule. Raises ConfigError where a plan is wrong.

    requests: every request, in order of arrival. disconnects: those whose client went away before the end of the reply.
    violations: what broke a rule, in words, with the request's number. failures: exceptions of the script; leaving the
    context raises the first.
    """

    def __init__(
        self,
        script: Script = demo_script,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        faults: Sequence[str] = (),
        files: Path | None = None,
        strict: bool = False,
        deepseek: bool = False,
        keep: int | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self._script = script
        self._answering = Answering(self._say, faults, files=files, deepseek=deepseek)
        self._host = host
        self._port = port
        self._strict = strict
        self._deepseek = deepseek
        self._keep = keep
        self._log = log or _silently
        self._server: asyncio.Server | None = None
        self._listening = False
        self._connections: set[asyncio.Task[None]] = set()
        self._connected = 0
        self._asked = 0
        self._changed = asyncio.Event()
        self.requests: list[LabRequest] = []
        self.disconnects: list[LabRequest] = []
        self.violations: list[str] = []
        self.failures = self._answering.failures

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        """What a client joins its path with."""
        return f"http://{self._host}:{self._port}/v1"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._listening = True
        self._server = await loop.create_server(self._accept, self._host, self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening = False
        if self._server is not None:
            self._server.close()
            for task in self._connections:
                task.cancel()
            await asyncio.gather(*self._connections, return_exceptions=True)
            await self._server.wait_closed()
        if value is None and self.failures:
            raise self.failures[0]

    async def until(self, condition: Callable[[Self], object]) -> None:
        """Returns once `condition` of this server holds. It is looked at after each request and each disconnect."""
        while not condition(self):
            await self._changed.wait()

    def _accept(self) -> Protocol:
        self._connected += 1
        return Protocol(self._begin, self._connected)

    def _begin(self, connection: Connection) -> None:
        if not self._listening:  # it came in while the server was closing
            connection.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(connection))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, connection: Connection) -> None:
        """Answers the requests of one connection until either side has had enough."""
        try:
            while (request := await read_request(connection.reader, connection.number)) is not None:
                self._asked += 1
                number = self._asked
                if not await connection.send(self._answer(request, number)):
                    self._log(f"{number}: the client left before the end of the answer")
                    self._record(self.disconnects, request)
                    break
                if not connection.is_open or not request.keeps_alive:
                    break
        except MalformedError as problem:
            self._log(f"what came is no HTTP/1.1 request: {problem}")
            await connection.send(error(400, f"this is no HTTP/1.1 request: {problem}"))
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            await connection.close()

    def _record(self, records: list[LabRequest], request: LabRequest) -> None:
        records.append(request)
        self._forget(records)
        self._changed.set()
        self._changed = asyncio.Event()

    def _forget(self, records: list[Any]) -> None:
        """Lets go of what is older than what is to be kept."""
        if self._keep is not None:
            del records[: max(0, len(records) - self._keep)]

    def _answer(self, request: LabRequest, number: int) -> Reply:
        """Records a request and what it breaks; returns the reply to it."""
        broken = self._broken(request)
        self.violations += (f"request {number}: {rule}" for rule in broken)
        self._forget(self.violations)
        self._record(self.requests, request)
        answered = self._answering.answer(request, number, "; ".join(broken) if self._strict else "")
        how = " stream" if request.streams else ""  # neither headers nor query: they may hold a key
        words = [request.method, f"{request.path}{how}", "->", str(answered.reply.status), *answered.faults]
        self._log(f"{number}: {' '.join(words)}")
        for rule in broken:
            self._log(f"{number}: broken rule: {rule}")
        return answered.reply

    def _say(self, request: LabRequest, number: int) -> Say:
        """The script's word."""
        if callable(self._script):
            return self._script(request)
        if number > len(self._script):
            return error(400, f"the lab server's script is over: this is request {number}")
        return self._script[number - 1]

    def _broken(self, request: LabRequest) -> list[str]:
        if request.api is None:
            return []
        return violations(request.api, request.json, echo_reasoning=self._deepseek and request.api == "chat")


def _silently(line: str) -> None:
    """No log."""


class LabThread:
    """A `LabServer` in a thread and a loop of its own, for tests that have none. A synchronous context manager.

    What it records can be read at any time; `until` waits for more.
    """

    def __init__(
        self, script: Script = demo_script, *, faults: Sequence[str] = (), deepseek: bool = False
    ) -> None:
        self._lab = LabServer(script, faults=faults, deepseek=deepseek)
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "lab")
        self._entered: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        self._leaving = asyncio.Event()
        self._done: concurrent.futures.Future[None] | None = None

    @property
    def base_url(self) -> str:
        return self._lab.base_url

    @property
    def requests(self) -> list[LabRequest]:
        return list(self._lab.requests)

    @property
    def disconnects(self) -> list[LabRequest]:
        return list(self._lab.disconnects)

    @property
    def violations(self) -> list[str]:
        return list(self._lab.violations)

    def __enter__(self) -> Self:
        self._done = self._thread.submit(lambda: asyncio.run(self._live()))
        self._done.add_done_callback(self._never_entered)
        self._entered.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.result().call_soon_threadsafe(self._leaving.set)
        self._thread.shutdown()
        if value is None and self._done is not None:
            self._done.result()

    def until(self, condition: Callable[[LabServer], object], timeout_s: float = 10) -> None:
        """Returns once `condition` of the server holds. Raises TimeoutError."""
        waiting = asyncio.run_coroutine_threadsafe(self._lab.until(condition), self._entered.result())
        try:
            waiting.result(timeout_s)
        except concurrent.futures.TimeoutError:
            waiting.cancel()
            raise TimeoutError(f"the lab server did not get there in {timeout_s} s") from None

    def _never_entered(self, done: concurrent.futures.Future[None]) -> None:
        if not self._entered.done():
            self._entered.set_exception(done.exception() or RuntimeError("the lab server did not start"))

    async def _live(self) -> None:
        async with self._lab:
            self._entered.set_result(asyncio.get_running_loop())
            await self._leaving.wait()
