"""Reads of a socket, paced to the frames of a screen.

Once content has flowed for a quarter of a second, the next read waits until one frame has passed since the last, so
that one wake-up takes many pieces. What comes meanwhile waits in the kernel, where it costs nothing. Headers and
first pieces are never delayed, the end by one frame at most; a cancel ends the wait like any other.
"""

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

FLOWS_AFTER_S = 0.25


class PacedBackend(httpcore.AsyncNetworkBackend):
    """A network back end whose connections are read once a frame. frame_s: its length, 0 for as they come."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend, frame_s: float) -> None:
        self._inner = inner
        self._frame_s = frame_s

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return PacedStream(stream, self._frame_s)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        return PacedStream(
            await self._inner.connect_unix_socket(path, timeout, socket_options), self._frame_s
        )

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class PacedStream(httpcore.AsyncNetworkStream):
    """One connection. A write (the next request) starts the pacing anew."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, frame_s: float) -> None:
        self._inner = inner
        self._frame_s = frame_s
        self._flows_since: float | None = None
        self._read_at = 0.0

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        now = asyncio.get_running_loop().time
        if self._flows_since is not None and now() - self._flows_since >= FLOWS_AFTER_S:
            early = self._read_at + self._frame_s - now()
            if early > 0:
                await asyncio.sleep(early)
        data = await self._inner.read(max_bytes, timeout)
        self._read_at = now()
        if self._flows_since is None:
            self._flows_since = self._read_at
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._flows_since = None
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            stream = await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except asyncio.CancelledError:
            await self._inner.aclose()  # httpcore closes it only after an error
            raise
        return PacedStream(stream, self._frame_s)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
