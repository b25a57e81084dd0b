"""The lab server: a loopback HTTP/1.1 server that answers as its script says, to the byte (product D2).

    async with LabServer([error(503, "busy"), Answer((TextPiece("hello"),))]) as lab:
        ...  # a client at lab.base_url
        assert len(lab.requests) == 2

`LabThread` is the same for a test that has no event loop.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from mini_agent.core.answers import Answer
from mini_agent.core.scripts import demo_answer
from mini_agent.lab.connection import Connection, Protocol
from mini_agent.lab.replies import Reply, chat_json, chat_stream, error
from mini_agent.lab.requests import LabRequest, MalformedError, core_request, read_request

Say = Reply | Answer
"""One answer of a script. An `Answer` goes out as a stream or as one JSON object, as the request wants it."""

Script = Sequence[Say] | Callable[[LabRequest], Say]
"""Successive answers, whatever is asked; or a function that makes each. A request after the last one gets a 400, which no
client asks again: a test sees at once that one came too many."""


def demo_script(request: LabRequest) -> Say:
    """What the demo model would say; the script of a server that was given none."""
    if request.method != "POST" or not request.path.endswith("/chat/completions"):
        return error(404, f"the lab server has nothing at {request.method} {request.path}")
    return demo_answer(core_request(request))


class LabServer:
    """An async context manager; listening while it is entered. port 0: a free one.

    requests: every request, in order of arrival. disconnects: those whose client went away before the end of the reply.
    failures: exceptions of the script; leaving the context raises the first.
    """

    def __init__(self, script: Script = demo_script, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._script = script
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._listening = False
        self._connections: set[asyncio.Task[None]] = set()
        self._connected = 0
        self._changed = asyncio.Event()
        self.requests: list[LabRequest] = []
        self.disconnects: list[LabRequest] = []
        self.failures: list[Exception] = []

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
                self._record(self.requests, request)
                if not await connection.send(self._reply(request)):
                    self._record(self.disconnects, request)
                    break
                if not connection.is_open or not request.keeps_alive:
                    break
        except MalformedError as problem:
            await connection.send(error(400, f"this is no HTTP/1.1 request: {problem}"))
        except asyncio.CancelledError:
            connection.abort()
            raise
        finally:
            await connection.close()

    def _record(self, records: list[LabRequest], request: LabRequest) -> None:
        records.append(request)
        self._changed.set()
        self._changed = asyncio.Event()

    def _reply(self, request: LabRequest) -> Reply:
        try:
            said = self._next(request)
            if isinstance(said, Answer):
                return chat_stream(said) if request.streams else chat_json(said)
            if not isinstance(said, Reply):
                raise TypeError(f"a script says Reply or Answer, not {type(said).__name__}")
        except Exception as problem:  # noqa: BLE001  a mistake in somebody's script is told to whoever wrote it
            self.failures.append(problem)
            return error(400, f"the lab server's script failed: {problem!r}")
        return said

    def _next(self, request: LabRequest) -> Say:
        if callable(self._script):
            return self._script(request)
        place = len(self.requests) - 1
        if place >= len(self._script):
            return error(400, f"the lab server's script is over: this is request {place + 1}")
        return self._script[place]


class LabThread:
    """A `LabServer` in a thread and a loop of its own, for tests that have none. A synchronous context manager.

    What it records can be read at any time; `until` waits for more.
    """

    def __init__(self, script: Script = demo_script) -> None:
        self._lab = LabServer(script)
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
