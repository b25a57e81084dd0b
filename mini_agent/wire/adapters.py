"""The API families: what goes out, what comes in, and under which path."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mini_agent.core.messages import Request
from mini_agent.core.profile import Api, Profile
from mini_agent.wire import chat_completions, messages, responses
from mini_agent.wire.decoding import Decoder


class Adapter(NamedTuple):
    """One family. encode: a request to a body. decoder: made with (profile, origin) for each attempt."""

    encode: Callable[[Request, Profile, frozenset[str]], dict[str, Any]]
    decoder: type[Decoder]


def adapter(api: Api) -> Adapter:
    """The adapter of a family."""
    return _ADAPTERS[api]


_ADAPTERS: dict[Api, Adapter] = {
    "chat": Adapter(chat_completions.encode, chat_completions.ChatDecoder),
    "responses": Adapter(responses.encode, responses.ResponsesDecoder),
    "messages": Adapter(messages.encode, messages.MessagesDecoder),
}
