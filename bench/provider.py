"""The provider that `terminal.py` measures against: one answer of 3,000 pieces, 4 ms apart, and a clock.

It runs as a process of its own (`python bench/provider.py`), picks a port of loopback, speaks all three families, and says
on stdout what happens when: a word and monotonic seconds a line.
"""

import asyncio
import contextlib
import time
from typing import TypeGuard

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.core.messages import Usage
from mini_agent.core.profile import Api
from mini_agent.lab.families import play
from mini_agent.lab.parts import head, json_reply
from mini_agent.lab.playing import Ask
from mini_agent.lab.requests import read_request

PIECES, APART_S = 3000, 0.004
FIRST = "Jinx"
"""The first piece; no program says this by itself."""
PROSE = (
    "The **old mill** by the river turned `slowly`, and nobody knew who had set it going again that year. "
)
LIST = "\n\n- bread and butter\n- a lamp with *oil*\n- two letters\n\n"
CODE = "\n\n```python\ndef turns(water: float, load: float) -> float:\n    return water / load\n```\n\n"


def pieces() -> list[str]:
    text = PROSE * 6 + LIST + PROSE * 4 + CODE
    text = FIRST + " " + text * (4 * PIECES // len(text) + 1)
    return [text[at : at + 4] for at in range(0, 4 * PIECES, 4)]


class Provider:
    """Answers on a free port of loopback, and says on stdout what happens when: a word and monotonic seconds a line."""

    def __init__(self) -> None:
        usage = Usage(input_tokens=10, output_tokens=PIECES)
        self._answer = Answer(tuple(map(TextPiece, pieces())), usage=usage, model="stub")
        self._aside = Answer((TextPiece("Turning mills"),), usage=usage, model="stub")

    async def serve(self) -> None:
        server = await asyncio.start_server(self._answered, "127.0.0.1", 0)
        print("port", server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            while request := await read_request(reader, 1):
                if request.api is None:
                    models = json_reply({"object": "list", "data": [{"id": "stub", "object": "model"}]})
                    writer.write(head(models) + b"".join(filter(_is_bytes, models.body)))
                elif (
                    request.fields.get("tools") == []
                ):  # codex asks for a title beside, which is not measured
                    writer.writelines(_laid_out(self._aside, request.api))
                    return
                else:
                    say("request")
                    await self._stream(_laid_out(self._answer, request.api), reader, writer)
                    return

    async def _stream(
        self, parts: list[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        left = asyncio.ensure_future(_silence(reader))
        begun = False
        for part in parts[:-1]:
            if not begun and FIRST.encode() in part:
                begun = True
                say("first")
            writer.write(part)
            await writer.drain()
            await asyncio.wait({left}, timeout=APART_S)
            if left.done():  # some leave at the last event, before the end of the body
                say("last" if part is parts[-2] else "gone")
                return
        writer.write(parts[-1])
        say("last")


def say(word: str) -> None:
    print(word, time.monotonic(), flush=True)


async def _silence(reader: asyncio.StreamReader) -> None:
    """As long as the client is there: it says nothing while it listens."""
    with contextlib.suppress(ConnectionError):
        await reader.read(1)


def _is_bytes(part: object) -> TypeGuard[bytes]:
    return isinstance(part, bytes)


def _laid_out(answer: Answer, api: Api) -> list[bytes]:
    """The writes: the head, each event as a chunk, the end of the body."""
    reply = play(answer, api, Ask())
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in filter(_is_bytes, reply.body)]
    return [head(reply), *chunks, b"0\r\n\r\n"]


if __name__ == "__main__":
    asyncio.run(Provider().serve())
