"""Clients of the lab server: one raw connection, and single requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from mini_agent.lab.server import LabServer


def posted(body: Any, *, headers: str = "") -> bytes:
    """A request as bytes."""
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: lab\r\ncontent-length: {len(data)}\r\n{headers}\r\n"
    return head.encode() + data


class Client:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, data: bytes | None = None) -> bytes:
        """Sends a request; returns the head of the reply, without its blank line."""
        self.writer.write(posted({}) if data is None else data)
        return (await self.reader.readuntil(b"\r\n\r\n"))[:-4]

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


@asynccontextmanager
async def connected(lab: LabServer) -> AsyncIterator[Client]:
    client = Client(*await asyncio.open_connection("127.0.0.1", lab.port))
    try:
        yield client
    finally:
        client.writer.transport.abort()


async def post(
    lab: LabServer,
    body: Any = None,
    path: str = "/chat/completions",
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:  # no TLS here to load anything for
        return await client.post(f"{lab.base_url}{path}", json=body or {}, headers=headers)
