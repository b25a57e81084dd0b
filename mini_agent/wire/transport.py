"""HTTP: one `Exchange` is one request and the bytes of its answer; the only place that knows httpx and its exceptions.

The connection is opened, read and closed by one task of the exchange's own, so that a cancel, at whatever moment,
finds it in one place and closes it there (a pool that is left with half-open connections is a common way to break
later requests). What the task has read lies in a small bounded store; a slow consumer makes the read wait (product
W10).
"""

import asyncio
import json
import ssl
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.request import getproxies

import httpx
import msgspec

from mini_agent.core.errors import (
    ConfigError,
    ConnectionFailedError,
    CutError,
    DeadlineError,
    ModelError,
    ProtocolError,
)
from mini_agent.wire.pacing import PacedBackend
from mini_agent.wire.profiles import shown

HELD_BYTES = 65536
"""What may lie between socket and consumer before reading waits."""

_PROXY_HINT = "A proxy is set: look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."

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


class Transport:
    """The connections to one endpoint.

    pace_s: the frame that reads wait for once content flows, None for a reader nobody watches. Made in any thread (it
    loads the certificates, which takes a while), used in one event loop.
    """

    def __init__(self, *, connect_s: float, pace_s: float | None = None) -> None:
        timeout = httpx.Timeout(None, connect=connect_s or None)
        try:
            self._client = httpx.AsyncClient(timeout=timeout, follow_redirects=False)
        except (ValueError, ImportError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            raise ConfigError(
                f"the connection can't be set up: {error}; look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY and"
                " SSL_CERT_FILE"
            ) from error
        if pace_s is not None:
            _pace(self._client, pace_s)
        self._connect_s = connect_s
        self._closing: set[asyncio.Task[None]] = set()

    def exchange(self, url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> "Exchange":
        """A POST of `body` as JSON, to be entered with `async with`."""
        # The standard encoder, because it escapes lone surrogates where msgspec raises.
        content = json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode()
        try:
            request = self._client.build_request(
                "POST", url, content=content, headers={"content-type": "application/json", **headers}
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConnectionFailedError(f"{shown(url)} can't be asked: {error}", retryable=False) from error
        return Exchange(self._client, request, self._connect_s, self._closing)

    async def aclose(self) -> None:
        for task in self._closing:
            task.cancel()
        if self._closing:
            await asyncio.wait(self._closing)
        await self._client.aclose()


def _pace(client: httpx.AsyncClient, pace_s: float) -> None:
    """Puts pacing under every connection of `client`, those through a proxy included.

    httpx has no public way to pass a network back end on; a test over a real socket notices if these names change.
    """
    transports: Iterable[object] = (client._transport, *client._mounts.values())  # noqa: SLF001
    for transport in transports:
        if isinstance(transport, httpx.AsyncHTTPTransport):
            pool = transport._pool  # noqa: SLF001
            pool._network_backend = PacedBackend(pool._network_backend, pace_s)  # noqa: SLF001


class Exchange:
    """One request and its answer. Enter it, then call `next` until it gives None."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        request: httpx.Request,
        connect_s: float,
        closing: set[asyncio.Task[None]],
    ) -> None:
        self._client = client
        self._request = request
        self._connect_s = connect_s
        self._closing = closing
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
        """Opens, reads and closes; what goes wrong is kept for `next`."""
        try:
            self._request.extensions["trace"] = self._trace
            response = await self._client.send(self._request, stream=True)
            try:
                self._answering = True
                self._put(Headers(response.status_code, dict(response.headers)))
                async for piece in response.aiter_bytes():
                    await self._keep(piece)
            finally:
                await response.aclose()
        except Exception as error:  # noqa: BLE001  whatever it is, `next` has to say it: nobody else looks at this task
            self._error = _mapped(error, self._request.url, self._connect_s, answering=self._answering)
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


def _mapped(error: Exception, url: httpx.URL, connect_s: float, *, answering: bool) -> ModelError:
    """Every exception of httpx as one of ours; the message names what happened, the host and the cause.

    answering: whether the answer had begun, so that an end is a cut.
    """
    host = url.host or str(url)
    if isinstance(error, httpx.ConnectTimeout):
        mapped: ModelError = DeadlineError(
            f"no connection to {host} within {connect_s:g} s", kind="connect_timeout"
        )
    elif isinstance(error, httpx.DecodingError):
        mapped = ProtocolError(f"{host} sent a body that can't be unpacked: {error}", retryable=True)
    elif isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        mapped = ConnectionFailedError(f"{shown(str(url))} can't be asked: {error}", retryable=False)
    elif isinstance(error, httpx.ProxyError):
        mapped = ConnectionFailedError(
            f"the proxy on the way to {host} refused: {_cause(error)}",
            hint=_PROXY_HINT,
        )
    elif isinstance(error, httpx.ConnectError):
        # A certificate that is not trusted will not be a second later.
        mapped = ConnectionFailedError(
            f"no connection to {host}: {_cause(error)}",
            retryable=not isinstance(_deepest(error), ssl.SSLCertVerificationError),
            hint=_PROXY_HINT if getproxies() else None,
        )
    elif isinstance(error, httpx.RemoteProtocolError) and answering:
        mapped = CutError(f"{host} ended its answer too early: {_cause(error)}")
    else:
        mapped = ConnectionFailedError(f"the connection to {host} broke: {_cause(error)}")
    mapped.__cause__ = error
    return mapped


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, the first of a group's."""
    link: BaseException | None = error
    for _ in range(8):
        if link is None:
            return
        yield link
        grouped = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        link = grouped[0] if grouped else link.__cause__ or link.__context__


def _deepest(error: BaseException) -> BaseException:
    *_, last = _chain(error)
    return last


def _cause(error: BaseException) -> str:
    """The text of the deepest cause that has one; else the classes, because an error without a word is no help."""
    links = list(_chain(error))
    text = next((said for link in reversed(links) if (said := str(link).strip())), "")
    names = [type(link).__name__ for link in links]
    return f"{names[0]}: {text}" if text else " <- ".join(dict.fromkeys(names))
