"""Events per second from the same chat-completion bytes: ours beside common stream readers, in one run.

    pip install httpx-sse openai      # the peers; without them only ours is measured
    python bench/stream_readers.py

Each reader runs several times, in turn, and the best run counts: this is about the code, not about the machine.
Ours is the one decoding path that handles every case: framing, JSON, assembly, our events. The whole stack is the same with
a socket, the transport, the model and both wrappers in front of it.
"""

import asyncio
import importlib.util
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable

import httpx

from mini_agent.core.messages import Message, Request, Text
from mini_agent.core.profile import Profile
from mini_agent.models.base import complete
from mini_agent.models.http import HttpModel
from mini_agent.models.policy import DEFAULT
from mini_agent.models.retrying import RetryingModel
from mini_agent.models.traced import TracedModel
from mini_agent.wire.assembly import Origin
from mini_agent.wire.chat_completions import ChatDecoder
from mini_agent.wire.framing import BodyDecoder
from mini_agent.wire.transport import Transport

EVENTS = 20_000
PIECE = 1460  # bytes of one network read
ROUNDS = 5

SERVER = """
import socket, sys
body = sys.stdin.buffer.read()
head = b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\nconnection: close\\r\\n\\r\\n"
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    link, _ = server.accept()
    with link:
        try:
            link.recv(1 << 20)
            link.sendall(head + body)
            link.shutdown(socket.SHUT_WR)
            while link.recv(1 << 16):  # closing with something unread would reset the connection
                pass
        except OSError:
            pass
"""


def body() -> bytes:
    """An answer of `EVENTS` small pieces."""
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def event(number: int) -> bytes:
        choice = {"index": 0, "delta": {"content": f"tok{number % 97} "}, "finish_reason": None}
        return (
            b"data: " + json.dumps({**chunk, "choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"
        )

    return b"".join(map(event, range(EVENTS))) + b"data: [DONE]\n\n"


BODY = body()
PIECES = [BODY[place : place + PIECE] for place in range(0, len(BODY), PIECE)]


def ours() -> None:
    framing = BodyDecoder()
    decoder = ChatDecoder(Profile(), Origin("bench", 1, 0.0))
    number = 0
    for piece in PIECES:
        for event in framing.feed(piece):
            number += 1
            decoder.decode(event, number, 0.0)
    decoder.close()


def json_alone() -> None:
    for line in BODY.split(b"\n\n"):
        if line.startswith(b"data: {"):
            json.loads(line[6:])


class Pieces(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in PIECES:
            yield piece


def client() -> httpx.AsyncClient:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces())

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def httpx_sse_json() -> None:
    from httpx_sse import aconnect_sse

    async with client() as http, aconnect_sse(http, "POST", "http://x/") as source:
        async for event in source.aiter_sse():
            if event.data != "[DONE]":
                json.loads(event.data)


async def openai_sdk() -> None:
    import openai

    api = openai.AsyncOpenAI(api_key="x", base_url="http://x/v1", http_client=client())
    stream = await api.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    )
    async for _ in stream:
        pass


async def whole_stack(port: int) -> None:
    profile = Profile(base_url=f"http://127.0.0.1:{port}/v1")
    http = HttpModel(profile, "", Transport(connect_s=10), user_agent="bench")
    model = TracedModel(RetryingModel(http, DEFAULT, rng=random.Random(1)), lambda ended: None)
    await complete(model, Request((Message("user", (Text("x"),)),), model="m"))
    await model.aclose()


def best(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Events per second of each, the best of `ROUNDS`; the readers take turns, so that noise meets all of them."""
    seconds = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    return {name: EVENTS / spent for name, spent in seconds.items()}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def main() -> None:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(BODY)
    server.stdin.close()
    server.stdout.readline()
    runs: dict[str, Callable[[], object]] = {
        "mini-agent, bytes to events": ours,
        "mini-agent, the whole stack": lambda: asyncio.run(whole_stack(port)),
        "json alone": json_alone,
    }
    peers = {"httpx_sse": ("httpx-sse with json", httpx_sse_json), "openai": ("openai SDK", openai_sdk)}
    for module, (name, run) in peers.items():
        if importlib.util.find_spec(module):
            runs[name] = lambda run=run: asyncio.run(run())
        else:
            print(f"{name}: not installed")
    try:
        figures = best(runs)
    finally:
        server.kill()
        server.wait()
    for name, figure in sorted(figures.items(), key=lambda pair: -pair[1]):
        print(f"{name:30} {figure:12,.0f} events/s")
    for name in ("httpx-sse with json", "openai SDK"):
        if name in figures:
            print(f"ours / {name}: {figures['mini-agent, bytes to events'] / figures[name]:.2f}")


if __name__ == "__main__":
    main()
