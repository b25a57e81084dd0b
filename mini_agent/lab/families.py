"""The three API families in one table: under which path each is asked, what it says, and how its requests are read."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mini_agent.core.answers import Answer
from mini_agent.core.messages import Request
from mini_agent.core.profile import Api
from mini_agent.lab.chat import chat_failure, chat_json, chat_request, chat_stream
from mini_agent.lab.messages import messages_failure, messages_json, messages_request, messages_stream
from mini_agent.lab.parts import Reply, json_reply
from mini_agent.lab.playing import Ask
from mini_agent.lab.responses import responses_json, responses_request, responses_stream


class Family(NamedTuple):
    """One family. failure: an error object from a type and a message."""

    path: str
    stream: Callable[[Answer, Ask], Reply]
    whole: Callable[[Answer, Ask], Reply]
    request: Callable[[Mapping[str, Any]], Request]
    failure: Callable[[str, str], dict[str, Any]]


FAMILIES: dict[Api, Family] = {
    "chat": Family("/chat/completions", chat_stream, chat_json, chat_request, chat_failure),
    "responses": Family("/responses", responses_stream, responses_json, responses_request, chat_failure),
    "messages": Family("/messages", messages_stream, messages_json, messages_request, messages_failure),
}

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
"""By status, as https://docs.anthropic.com/en/api/errors names them; the other families have looser words."""


def api_of(path: str) -> Api | None:
    """The family that is asked under a path, with or without what a base URL may put before it."""
    return next((api for api, family in FAMILIES.items() if path.rstrip("/").endswith(family.path)), None)


def play(answer: Answer, api: Api, ask: Ask) -> Reply:
    """`answer` as this family gives it."""
    family = FAMILIES[api]
    return family.stream(answer, ask) if ask.streams else family.whole(answer, ask)


def failed(status: int, message: str, api: Api) -> Reply:
    """An error of this family."""
    broken = "api_error" if api == "messages" else "server_error"
    kind = _ERROR_TYPES.get(status, broken if status >= 500 else "invalid_request_error")
    return json_reply(FAMILIES[api].failure(kind, message), status)
