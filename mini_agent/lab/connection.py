"""One client's connection to the lab server: replies written to the byte, and notice of when the client has gone."""

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Callable

from mini_agent.lab.parts import Cut, Framing, Hold, Pause, Repeat, Reply, Verbatim, head

HEAD_LIMIT = 1 << 20
"""Bytes of a request's head."""


class Connection:
    """One client: what it sends, whether it is still there, and how a reply is written to it."""

    def __init__(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gone: asyncio.Event
    ) -> None:
        self.number = number
        self.reader = reader
        self.is_open = True
        self._writer = writer
        self._gone = gone

    async def send(self, reply: Reply) -> bool:
        """Writes `reply`; False where the client went away before its end."""
        try:
            for part in (*reply.before, Verbatim(head(reply)), *reply.body):
                if isinstance(part, Cut):
                    self._cut(part)
                    return True
                await self._part(part, reply.framing)
                if self._gone.is_set():
                    return False
            if reply.framing == "chunked":
                self._writer.write(b"0\r\n\r\n")
            await self._writer.drain()
        except OSError:
            return False
        self.is_open = reply.framing in ("chunked", "length")
        return True

    async def _part(self, part: bytes | Pause | Hold | Repeat | Verbatim, framing: Framing) -> None:
        match part:
            case b"":
                pass  # as a chunk it would be the end of the body
            case bytes():
                self._writer.write(b"%x\r\n%b\r\n" % (len(part), part) if framing == "chunked" else part)
                await self._writer.drain()
            case Verbatim(data):
                self._writer.write(data)
            case Pause(seconds):
                await self._silence(seconds)
            case Repeat(data, seconds):
                while not self._gone.is_set():
                    await self._part(data, framing)
                    await self._silence(seconds)
            case Hold():
                await self._gone.wait()

    async def _silence(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._gone.wait()

    def _cut(self, cut: Cut) -> None:
        self.is_open = False
        if cut.reset:
            # Lingering for no time at all makes the close a reset, on every system.
            linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    def abort(self) -> None:
        """Drops the connection, and what was not sent yet."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Ends the connection once everything is sent."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            pass  # the client was quicker
        except asyncio.CancelledError:
            self.abort()
            raise


class Protocol(asyncio.StreamReaderProtocol):
    """A stream that also knows, without reading from it, when its client has gone."""

    def __init__(self, begin: Callable[[Connection], None], number: int) -> None:
        self._gone = asyncio.Event()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            begin(Connection(number, reader, writer, self._gone))

        super().__init__(asyncio.StreamReader(limit=HEAD_LIMIT), connected)

    def eof_received(self) -> bool | None:
        self._gone.set()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        super().connection_lost(exc)
