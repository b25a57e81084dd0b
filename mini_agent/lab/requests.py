"""What the lab server was asked: HTTP/1.1 requests read from a socket."""

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from mini_agent.core.profile import Api
from mini_agent.lab.families import api_of

_STREAM = re.compile(rb'"stream"\s*:\s*(true|false)')


class MalformedError(Exception):
    """Bytes that are no HTTP/1.1 request."""


@dataclass(frozen=True, slots=True)
class LabRequest:
    """One request as it came. headers: names in lower case. json: the decoded body, None where it is not JSON.

    path: without the query, which is `query`, not decoded. arrived: seconds on the event loop's clock, when the body was
    complete. connection: which of the server's connections it came on, from 1.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    json: Any
    arrived: float
    connection: int
    query: str = ""

    @property
    def api(self) -> Api | None:
        """The family that is asked; None for everything else."""
        return api_of(self.path) if self.method == "POST" else None

    @property
    def faults(self) -> tuple[str, ...]:
        """The faults that this request asks for itself, as `fault` in its query or as the header `x-lab-fault`."""
        asked = parse_qs(self.query).get("fault", [])
        return (*asked, *filter(None, [self.headers.get("x-lab-fault")]))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the body, none where it is no JSON object."""
        return self.json if isinstance(self.json, dict) else {}

    @property
    def tag(self) -> str:
        """Says which request it is: the same for the same body, streamed or not, now and later."""
        return hashlib.sha256(_STREAM.sub(b"", self.body)).hexdigest()[:12]

    @property
    def streams(self) -> bool:
        """Whether the answer is wanted as a stream."""
        return self.fields.get("stream") is True

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close"


async def read_request(reader: asyncio.StreamReader, connection: int) -> LabRequest | None:
    """The next request of a connection; None where the client closed it instead. Raises MalformedError."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ")
        path, _, query = target.partition("?")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except (asyncio.LimitOverrunError, ValueError) as problem:
        raise MalformedError(str(problem)) from problem
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        decoded = None
    arrived = asyncio.get_running_loop().time()
    return LabRequest(method, path, headers, body, decoded, arrived, connection, query)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers
    return bytes(body)
