"""What models an endpoint offers: one GET, which all families answer in nearly the same way."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from mini_agent.core.errors import DeadlineError, ModelError, ProtocolError
from mini_agent.core.profile import Profile
from mini_agent.wire.exchange import Headers
from mini_agent.wire.failures import failure
from mini_agent.wire.loading import loads
from mini_agent.wire.profiles import model_list, shown
from mini_agent.wire.transport import Transport

LISTING_S = 15.0
"""How long a list is waited for: somebody sits before it."""

LISTING_BYTES = 8_000_000


async def offered(
    transport: Transport, profile: Profile, headers: Mapping[str, str], *, now: float
) -> list[str]:
    """The names, in the endpoint's order, each once. Raises ModelError."""
    url = model_list(profile)
    status, answer, body = 0, {}, b""
    try:
        async with (
            asyncio.timeout(LISTING_S),
            transport.exchange(url, {"accept": "application/json", **headers}, None) as exchange,
        ):
            while len(body) < LISTING_BYTES and (arrival := await exchange.next(LISTING_S)) is not None:
                if isinstance(arrival, Headers):
                    status, answer = arrival.status, dict(arrival.headers)
                elif isinstance(arrival, bytes):
                    body += arrival
    except TimeoutError:
        raise DeadlineError(
            f"{shown(url)} gave no list within {LISTING_S:g} s", kind="first_event_timeout"
        ) from None
    if not 200 <= status < 300:
        raise failure(status, answer, body, now=now, key_env=profile.key_env)
    try:
        names = list(dict.fromkeys(_names(loads(body))))
    except ValueError:
        names = []
    if not names:
        raise _no_list(url)
    return names


def _names(payload: Any) -> Iterator[str]:
    """From `{data: [{id}]}` (OpenAI, Anthropic), `{models: [{name}]}` (Ollama, Gemini), or a bare list."""
    entries = payload
    if isinstance(payload, dict):
        entries = payload.get("data") or payload.get("models")
    for entry in entries if isinstance(entries, list) else ():
        name = entry if isinstance(entry, str) else None
        if isinstance(entry, dict):
            name = entry.get("id") or entry.get("name") or entry.get("model")
        if isinstance(name, str) and name:
            yield name


def _no_list(url: str) -> ModelError:
    return ProtocolError(f"{shown(url)} sent no list of models", retryable=False)
