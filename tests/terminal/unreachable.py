"""Addresses to which no connection comes about, for a program that is to be stopped while it connects."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from interruptions import Stage, Start


class FullQueue:
    """An address where nobody accepts and the queue is full: the system answers no further connection. Looks at /proc."""

    scheme = "http"

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port: int = self._server.getsockname()[1]
        self._filling = [socket.socket() for _ in range(4)]
        for each in self._filling:
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", self.port))
        self._ours = self._opening()

    def tried(self) -> None:
        """Returns once a connection is being opened."""
        while self._opening() <= self._ours:
            time.sleep(0.005)

    def left(self) -> None:
        """Returns once that was given up."""
        while self._opening() > self._ours:
            time.sleep(0.005)

    def close(self) -> None:
        for each in (self._server, *self._filling):
            each.close()

    def _opening(self) -> int:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
        return sum(row[2:4] == [f"0100007F:{self.port:04X}", "02"] for row in rows)  # 02: SYN_SENT


class NoHandshake:
    """An address where the connection is there, but nobody says a word of TLS."""

    scheme = "https"

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(5)
        self.port: int = self._server.getsockname()[1]
        self._client: socket.socket | None = None

    def tried(self) -> None:
        """Returns once a client has begun."""
        self._client, _ = self._server.accept()
        self._client.settimeout(5)
        self._client.recv(1)

    def left(self) -> None:
        """Returns once it has gone."""
        assert self._client is not None
        with self._client as client, contextlib.suppress(ConnectionResetError):
            while client.recv(65536):
                pass

    def close(self) -> None:
        self._server.close()


Unreachable = FullQueue | NoHandshake


@contextlib.contextmanager
def connecting_to(nowhere: Unreachable, start: Start, folder: Path) -> Iterator[Stage]:
    """The program at its first prompt, with that address for its provider's. Closes it in the end."""
    stage = Stage(folder)
    address = {
        "MINI_AGENT_BASE_URL": f"{nowhere.scheme}://127.0.0.1:{nowhere.port}/v1",
        "MINI_AGENT_MODEL": "m",
    }
    with contextlib.closing(nowhere):
        stage.terminal = start(env=address)
        stage.terminal.wait_for_prompt()
        yield stage


def connect(stage: Stage, nowhere: Unreachable) -> None:
    """A message, on its way no further than that."""
    stage.ask("hello", seen="connecting")
    nowhere.tried()
