"""One HTTP request and the bytes of its answer.

The connection is opened, read and closed by one task of the exchange's own, so that a cancel, at whatever moment, finds it
in one place and closes it there (a pool that is left with half-open connections is a common way to break later requests).
What the task has read lies in a small bounded store; a slow consumer makes the read wait (product W10).
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self

import httpx
import msgspec

from mini_agent.core.errors import ModelError
from mini_agent.wire.connection_errors import mapped

HELD_BYTES = 65536
"""What may lie between socket and consumer before reading waits."""

DRAIN_S = 1.0
"""How long the rest of a finished answer is read, so that its connection can be used again."""


class Sent(msgspec.Struct, frozen=True):
    """The request is out. connect_s: what connecting took, 0 on a connection that was there already."""

    connect_s: float


class Headers(msgspec.Struct, frozen=True):
    """The answer began. Names are in lower case."""

    status: int
    headers: Mapping[str, str]


Arrival = Sent | Headers | bytes


class Exchange:
    """One request and its answer. Enter it, then call `next` until it gives None."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        request: httpx.Request,
        connect_s: float,
        closing: set[asyncio.Task[None]],
        *,
        turn: AbstractAsyncContextManager[object],
        close_client: bool,
    ) -> None:
        self._client = client
        self._request = request
        self._connect_s = connect_s
        self._closing = closing
        self._turn = turn
        self._close_client = close_client
        self._arrived: deque[Arrival] = deque()
        self._held = 0
        self._error: ModelError | None = None
        self._change = asyncio.Event()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connect_began: float | None = None
        self._connect_took = 0.0
        self._drain = False
        self._answering = False
        self._tunnelling = False
        self.bytes = 0
        self.read_gaps_s: list[float] = []
        self._read_at: float | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._read(), name="exchange")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connection at once; after `finish`, lets it be read to its end in the background."""
        task = self._task
        if task is None or task.done():
            return
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        self._room.set()
        if self._drain:
            asyncio.get_running_loop().call_later(DRAIN_S, task.cancel)
            return
        task.cancel()
        # If a second cancel ends this wait, the task still closes its connection, and `aclose` waits for it.
        await asyncio.wait({task})

    def finish(self) -> None:
        """The answer is complete: what may follow is read and dropped, without making anyone wait."""
        self._drain = True

    async def next(self, timeout_s: float) -> Arrival | None:
        """What came next, joined as far as it is there; None at the end. Raises TimeoutError, ModelError."""
        if not self._arrived and not self._ended():
            self._change.clear()
            async with asyncio.timeout(timeout_s):
                await self._change.wait()
        if self._arrived:
            return self._take()
        if self._error is not None:
            raise self._error
        return None

    def _ended(self) -> bool:
        return self._task is None or self._task.done()

    def _take(self) -> Arrival:
        first = self._arrived.popleft()
        if not isinstance(first, bytes):
            return first
        parts = [first]
        while self._arrived and isinstance(self._arrived[0], bytes):
            parts.append(self._arrived.popleft())  # type: ignore[arg-type]  # the line above checked it
        self._held = 0
        self._room.set()
        return b"".join(parts)

    def _put(self, arrival: Arrival) -> None:
        self._arrived.append(arrival)
        self._change.set()

    async def _read(self) -> None:
        """Waits for its turn, opens, reads and closes; what goes wrong is kept for `next`."""
        try:
            async with AsyncExitStack() as closing:
                await closing.enter_async_context(self._turn)
                if self._close_client:
                    closing.push_async_callback(self._client.aclose)
                self._request.extensions["trace"] = self._trace
                response = await self._client.send(self._request, stream=True)
                closing.push_async_callback(response.aclose)
                self._answering = True
                self._put(Headers(response.status_code, dict(response.headers)))
                async for piece in response.aiter_bytes():
                    await self._keep(piece)
        except Exception as error:  # noqa: BLE001  whatever it is, `next` has to say it: nobody else looks at this task
            self._error = mapped(error, self._request.url, self._connect_s, answering=self._answering)
        finally:
            self._change.set()

    async def _keep(self, piece: bytes) -> None:
        if not piece or self._drain:
            return
        if self._held == 0:  # the first of what one read of the socket gave
            now = time.perf_counter()
            if self._read_at is not None:
                self.read_gaps_s.append(now - self._read_at)
            self._read_at = now
        self.bytes += len(piece)
        self._held += len(piece)
        self._put(piece)
        while self._held >= HELD_BYTES and not self._drain:
            self._room.clear()
            await self._room.wait()

    async def _trace(self, name: str, info: Mapping[str, Any]) -> None:
        """httpx's word of what happens underneath: connecting, and the request sent."""
        if name.endswith("send_request_headers.started"):
            self._tunnelling = info["request"].method == b"CONNECT"  # to a proxy: it is not the request yet
        elif name == "connection.connect_tcp.started":
            self._connect_began = time.perf_counter()
        elif (
            name.endswith(("connect_tcp.complete", "start_tls.complete")) and self._connect_began is not None
        ):
            self._connect_took = time.perf_counter() - self._connect_began
        elif name.endswith("send_request_body.complete") and not self._tunnelling:
            self._put(Sent(self._connect_took))
