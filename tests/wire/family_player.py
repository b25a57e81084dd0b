"""What a case of a family's corpus is, and what is true of it."""

from collections.abc import Iterable, Sequence
from typing import Any

import chat_player
import msgspec
from chat_player import Played

from mini_agent.core.errors import ModelError
from mini_agent.core.messages import Response, Usage
from mini_agent.core.profile import Api, Profile


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
    return chat_player.play(chunks, profile, api)


def three_ways(api: Api, chunks: Sequence[bytes], profile: Profile | None = None) -> Played:
    """The outcome, which is the same as given, joined and byte by byte."""
    return chat_player.three_ways(chunks, profile, api)


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
