"""Plays the bytes of a body through framing and the chat decoder, as a model would, and checks what always holds."""

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from mini_agent.core.errors import ModelError
from mini_agent.core.events import ChannelToken, FirstToken, Notice, StreamEvent, ToolCallDelta
from mini_agent.core.messages import Response
from mini_agent.core.profile import Api, Profile
from mini_agent.wire.adapters import adapter
from mini_agent.wire.assembly import Origin
from mini_agent.wire.decoding import Decoder
from mini_agent.wire.framing import BodyDecoder

STARTED = 100.0
DONE = b"data: [DONE]\n\n"


class Played(msgspec.Struct):
    """What came of a body: its events, and its answer or its error."""

    events: list[StreamEvent]
    response: Response | None
    error: ModelError | None
    decoder: Decoder

    def said(self) -> Any:
        """Everything that may be compared between two plays, without what depends on how events were numbered."""
        error = self.error and (self.error.kind, self.error.message, self.error.retryable)
        return self.events, self.response, error

    @property
    def text(self) -> str:
        return self._channel("text")

    @property
    def reasoning(self) -> str:
        return self._channel("reasoning")

    @property
    def notices(self) -> list[Notice]:
        return [event for event in self.events if isinstance(event, Notice)]

    def _channel(self, channel: str) -> str:
        return "".join(
            event.text
            for event in self.events
            if isinstance(event, ChannelToken) and event.channel == channel
        )


def sse(payload: Any, event: str | None = None) -> bytes:
    """One event of a stream."""
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()


def delta(content: str | None = None, finish: str | None = None, **fields: Any) -> bytes:
    """An event with one choice."""
    piece = fields if content is None else {"content": content, **fields}
    return sse({"choices": [{"index": 0, "delta": piece, "finish_reason": finish}]})


def call(
    index: Any = 0, call_id: Any = None, name: Any = None, arguments: Any = None, **extra: Any
) -> dict[str, Any]:
    """An entry of `tool_calls`, without the keys that are not given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry = {"index": index, "id": call_id, "function": function, **extra}
    return {key: value for key, value in entry.items() if value is not None}


def calls(*entries: Any, finish: str | None = None) -> bytes:
    """An event with pieces of calls."""
    return delta(tool_calls=list(entries), finish=finish)


def play(chunks: Iterable[bytes], profile: Profile | None = None, api: Api = "chat") -> Played:
    """The outcome of a body that comes in these chunks."""
    body = BodyDecoder()
    decoder = adapter(api).decoder(profile or Profile(), Origin("request", 1, STARTED))
    events: list[StreamEvent] = []
    numbers = itertools.count(1)
    response: Response | None = None
    error: ModelError | None = None
    try:
        for chunk in chunks:
            for event in body.feed(chunk):
                number = next(numbers)
                events += decoder.decode(event, number, STARTED + number)
        for event in body.close():
            number = next(numbers)
            events += decoder.decode(event, number, STARTED + number, at_end=True)
        response = decoder.close()
    except ModelError as caught:
        error = caught
    played = Played(events, response, error, decoder)
    check(played)
    return played


def check(played: Played) -> None:
    """What holds for every answer, whatever came."""
    pieces = [event for event in played.events if isinstance(event, ChannelToken | ToolCallDelta)]
    assert all(event.text for event in pieces if isinstance(event, ChannelToken))
    spoken = [event for event in pieces if isinstance(event, ChannelToken) or event.arguments]
    first = [event for event in played.events if isinstance(event, FirstToken)]
    assert len(first) == bool(spoken)
    if spoken:
        assert played.events[played.events.index(spoken[0]) - 1] == first[0]
        assert first[0].ttft_s == first[0].t - STARTED
    msgspec.json.encode(played.events)  # nothing in them that can't be written down
    if played.response is not None:
        assert played.response.text == played.text
        assert played.response.reasoning == played.reasoning
        places = [event.index for event in pieces if isinstance(event, ToolCallDelta)]
        assert list(dict.fromkeys(places)) == list(range(len(played.response.tool_calls)))
        ids = [block.id for block in played.response.tool_calls]
        assert len(set(ids)) == len(ids)
        assert all(ids)
        msgspec.json.encode(played.response)


def three_ways(chunks: Sequence[bytes], profile: Profile | None = None, api: Api = "chat") -> Played:
    """The outcome, which is the same as given, joined and byte by byte."""
    body = b"".join(chunks)
    given = play(chunks, profile, api)
    assert play([body], profile, api).said() == given.said()
    assert play([body[place : place + 1] for place in range(len(body))], profile, api).said() == given.said()
    return given
