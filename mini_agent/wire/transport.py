"""The connections to one endpoint: httpx's client, set up for streams that take long and end at any moment."""

import asyncio
import json
import ssl
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx

from mini_agent.core.errors import ConfigError, ConnectionFailedError
from mini_agent.core.redact import redact
from mini_agent.wire.exchange import Exchange
from mini_agent.wire.pacing import PacedBackend
from mini_agent.wire.profiles import shown

KEPT_ALIVE_S = 90.0
"""How long a connection waits for the next request: tools may run in between."""


@dataclass(frozen=True, slots=True)
class Slots:
    """How many streams may run at once (product W12): one pair for each client, the second shared by a process."""

    client: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    process: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(16))

    def taken(self) -> AsyncExitStack:
        """A context that waits for its turn, holds one slot of each kind, and gives them back."""
        return _Taken(self.client, self.process)


class _Taken(AsyncExitStack):
    def __init__(self, *slots: asyncio.Semaphore) -> None:
        super().__init__()
        self._slots = slots

    async def __aenter__(self) -> "_Taken":
        await super().__aenter__()
        for slot in self._slots:
            await self.enter_async_context(slot)
        return self


class Transport:
    """What requests to one endpoint go out on.

    pace_s: the frame that reads wait for once content flows, None for a reader nobody watches. ca_file: certificates to
    trust in place of the system's. Made in any thread (it loads the certificates, which takes a while), used in one event
    loop. Raises ConfigError for proxies and certificates that can't be used.
    """

    def __init__(
        self,
        *,
        connect_s: float,
        pace_s: float | None = None,
        ca_file: str | None = None,
        slots: Slots | None = None,
    ) -> None:
        self._connect_s = connect_s
        self._pace_s = pace_s
        self._slots = slots or Slots()
        self._closing: set[asyncio.Task[None]] = set()
        try:
            self._tls = ssl.create_default_context(cafile=ca_file) if ca_file else httpx.create_ssl_context()
        except (ssl.SSLError, OSError) as error:
            where = ca_file or "SSL_CERT_FILE or SSL_CERT_DIR"
            raise ConfigError(f"the certificates in {where} can't be used: {error}") from error
        self._client = self._new_client(
            httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEPT_ALIVE_S)
        )

    def exchange(
        self, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None, *, fresh: bool = False
    ) -> Exchange:
        """A POST of `body` as JSON, or a GET where there is none; to be entered with `async with`.

        fresh: on a connection of its own, outside the pool, whose connections may be what is broken; it is closed after
        the answer. HTTP/1.1, as on all of them: httpx speaks nothing newer unless it is asked to.
        """
        # The standard encoder, because it escapes lone surrogates where msgspec raises.
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        kind = {} if body is None else {"content-type": "application/json"}
        try:
            request = self._client.build_request(
                "GET" if body is None else "POST", url, content=content, headers={**kind, **headers}
            )
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ConnectionFailedError(f"{shown(url)} can't be asked: {error}", retryable=False) from error
        client = self._new_client(httpx.Limits(max_keepalive_connections=0)) if fresh else self._client
        return Exchange(
            client, request, self._connect_s, self._closing, turn=self._slots.taken(), close_client=fresh
        )

    async def aclose(self) -> None:
        for task in self._closing:
            task.cancel()
        if self._closing:
            await asyncio.wait(self._closing)
        await self._client.aclose()

    def _new_client(self, limits: httpx.Limits) -> httpx.AsyncClient:
        timeout = httpx.Timeout(None, connect=self._connect_s or None)
        try:
            client = httpx.AsyncClient(
                verify=self._tls, timeout=timeout, limits=limits, follow_redirects=False
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"the proxy settings can't be used: {redact(str(error))}"
                " (look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY)"
            ) from error
        _pace(client, self._pace_s or 0.0)
        return client


def _pace(client: httpx.AsyncClient, pace_s: float) -> None:
    """Puts pacing under every connection of `client`, those through a proxy included.

    httpx has no public way to pass a network back end on; a test over a real socket notices if these names change.
    """
    transports: Iterable[object] = (client._transport, *client._mounts.values())  # noqa: SLF001
    for transport in transports:
        if isinstance(transport, httpx.AsyncHTTPTransport):
            pool = transport._pool  # noqa: SLF001
            pool._network_backend = PacedBackend(pool._network_backend, pace_s)  # noqa: SLF001
