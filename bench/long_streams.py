"""What long streams cost: memory under a slow consumer, and the time of one enormous event. Figures, no verdicts but two.

    python bench/long_streams.py

A 200 MB stream whose answer is small (each chunk carries 60 kB that nobody needs) is read by a consumer that sleeps between
events: what the process grows by, and how far the server got ahead. One event of 32 MB arrives in network-sized pieces: its
time, and the ratio to one of 8 MB, which is 4 where the cost is linear.
"""

import asyncio
import resource
import socket
import subprocess
import sys
import time
from contextlib import aclosing

from mini_agent.core.events import ChannelToken
from mini_agent.core.messages import Message, Request, Text
from mini_agent.core.profile import Profile
from mini_agent.models.http import HttpModel
from mini_agent.wire.assembly import Origin
from mini_agent.wire.chat_completions import ChatDecoder
from mini_agent.wire.framing import BodyDecoder
from mini_agent.wire.transport import Transport

MB = 1_000_000
STREAM_MB = 200
PIECE = 1460

SERVER = """
import socket, sys
chunk = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}],"pad":"' + b"x" * 60000 + b'"}\\n\\n'
last = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n'
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
link, _ = server.accept()
link.recv(1 << 20)
link.sendall(b"HTTP/1.1 200 OK\\r\\ncontent-type: text/event-stream\\r\\nconnection: close\\r\\n\\r\\n")
for _ in range(int(sys.argv[2]) // len(chunk)):
    link.sendall(chunk)
link.sendall(last)
link.shutdown(socket.SHUT_WR)
while link.recv(1 << 16):
    pass
"""


def peak_mb() -> float:
    """The most memory this process has held. Kilobytes on Linux, bytes on macOS."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (MB if sys.platform == "darwin" else 1000)


async def slow_consumer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port), str(STREAM_MB * MB)], stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    server.stdout.readline()
    profile = Profile(base_url=f"http://127.0.0.1:{port}/v1")
    model = HttpModel(profile, "", Transport(connect_s=10), user_agent="bench")
    before, pieces, began = peak_mb(), 0, time.perf_counter()
    try:
        async with aclosing(model.stream(Request((Message("user", (Text("x"),)),), model="m"))) as events:
            async for event in events:
                if isinstance(event, ChannelToken):
                    pieces += 1
                    await asyncio.sleep(0.001)
    finally:
        await model.aclose()
        server.kill()
        server.wait()
    print(
        f"slow consumer: {STREAM_MB} MB, {pieces} pieces in {time.perf_counter() - began:.1f} s;"
        f" memory grew by {peak_mb() - before:.1f} MB"
    )


def one_event(size_mb: int) -> float:
    """Seconds for one event of that size, from bytes to our event."""
    body = (
        b'data: {"choices":[{"index":0,"delta":{"content":"'
        + b"x" * (size_mb * MB)
        + b'"}}]}\n\ndata: [DONE]\n\n'
    )
    pieces = [body[place : place + PIECE] for place in range(0, len(body), PIECE)]
    framing, decoder = BodyDecoder(), ChatDecoder(Profile(), Origin("bench", 1, 0.0))
    began, number = time.perf_counter(), 0
    for piece in pieces:
        for event in framing.feed(piece):
            number += 1
            decoder.decode(event, number, 0.0)
    assert len(decoder.close().text) == size_mb * MB
    return time.perf_counter() - began


def main() -> None:
    asyncio.run(slow_consumer())
    small, large = (min(one_event(size) for _ in range(3)) for size in (8, 32))
    print(f"one event: 8 MB in {small:.3f} s, 32 MB in {large:.3f} s, ratio {large / small:.1f} (linear: 4)")


if __name__ == "__main__":
    main()
