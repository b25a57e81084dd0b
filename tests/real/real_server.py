"""A real model behind all three families: llama.cpp's server with a model of 135 million parameters, on loopback."""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest

from mini_agent.core.profile import Api, Profile
from mini_agent.models.http import HttpModel
from mini_agent.wire.profiles import at, shipped, speaking
from mini_agent.wire.transport import Transport

PROGRAM = Path(__file__).with_name("llama_server.py")
MODEL = "smollm2"
KEY = "a-key-of-the-tests"


class RealServer(msgspec.Struct, frozen=True):
    """A running server. base_url: where the families' paths follow."""

    base_url: str

    def get(self, path: str) -> str:
        """What the server says of itself. path: from its root."""
        address = self.base_url.removesuffix("/v1") + path
        with urlopen(Request(address, headers={"authorization": f"Bearer {KEY}"}), timeout=30) as answer:
            return answer.read().decode()

    def count(self, name: str) -> int:
        """One of its counters."""
        lines = self.get("/metrics").splitlines()
        return int(next(line for line in lines if line.startswith(f"llamacpp:{name} ")).split()[1])

    def profile(self, api: Api, **extra_body: Any) -> Profile:
        """llama.cpp's profile at this address. extra_body: fields that every request gets."""
        profile = at(speaking(shipped()["llama.cpp"], api), self.base_url)
        return msgspec.structs.replace(profile, extra_body=extra_body)

    @asynccontextmanager
    async def model(self, profile: Profile, key: str = KEY) -> AsyncIterator[HttpModel]:
        """The project's model on this server."""
        model = HttpModel(profile, key, Transport(connect_s=10), user_agent="test")
        try:
            yield model
        finally:
            await model.aclose()


@contextmanager
def started(model: Path, log: Path) -> Iterator[RealServer]:
    """A server of its own. model: the file. log: where it writes what it does. Skips where it can't run here."""
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, PROGRAM, model, MODEL, KEY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().decode().strip()
            if not address:
                last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-1:]
                pytest.skip(f"no real model server: it did not start ({process.wait()}): {' '.join(last)}")
            server = RealServer(f"{address}/v1")
            assert '"ok"' in server.get("/health")
            yield server
        finally:
            process.stdin.close()  # which ends it
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
