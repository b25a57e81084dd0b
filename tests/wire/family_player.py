"""Plays bodies of any family, and what a case of a family's corpus is."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from chat_player import STARTED, Played, check

from mini_agent.core.errors import ModelError
from mini_agent.core.events import StreamEvent
from mini_agent.core.messages import Response, Usage
from mini_agent.core.profile import Api, Profile
from mini_agent.wire.adapters import adapter
from mini_agent.wire.assembly import Origin
from mini_agent.wire.framing import BodyDecoder


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Chunks as the network cuts them, and what becomes of them. calls: id, name, arguments."""

    id: str
    chunks: tuple[bytes, ...]
    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, Any], ...] = ()
    raw: str | None = None
    stop: str = "end_turn"
    usage: dict[str, int] = {}


def play(api: Api, chunks: Iterable[bytes], profile: Profile | None = None) -> Played:
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


def three_ways(api: Api, chunks: Sequence[bytes], profile: Profile | None = None) -> Played:
    """The outcome, which is the same as given, joined and byte by byte."""
    body = b"".join(chunks)
    given = play(api, chunks, profile)
    assert play(api, [body], profile).said() == given.said()
    assert play(api, [body[place : place + 1] for place in range(len(body))], profile).said() == given.said()
    return given


def answer(api: Api, chunks: Sequence[bytes], profile: Profile | None = None) -> Response:
    played = three_ways(api, chunks, profile)
    assert played.error is None
    assert played.response is not None
    return played.response


def failed(api: Api, chunks: Sequence[bytes], profile: Profile | None = None) -> ModelError:
    played = three_ways(api, chunks, profile)
    assert played.response is None
    assert played.error is not None
    return played.error


def fits(api: Api, case: Case) -> None:
    """What is true of a case."""
    response = answer(api, case.chunks)
    assert response.text == case.text
    assert response.reasoning == case.reasoning
    assert tuple((block.id, block.name, block.arguments) for block in response.tool_calls) == case.calls
    assert all(block.invalid is None for block in response.tool_calls)
    assert response.raw_stop_reason == case.raw
    assert response.stop_reason == case.stop
    assert response.usage == Usage(**case.usage)
