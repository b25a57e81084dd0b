"""What a script of the lab server can say: everything from one place, and a builder for errors."""

from collections.abc import Mapping
from typing import Any

from mini_agent.lab.chat import chat_json, chat_stream
from mini_agent.lab.messages import messages_json, messages_stream
from mini_agent.lab.parts import (
    Cut,
    Framing,
    Hold,
    Part,
    Pause,
    Repeat,
    Reply,
    Verbatim,
    event_stream,
    json_reply,
    sse,
)
from mini_agent.lab.responses import responses_json, responses_stream

__all__ = [
    "Cut",
    "Framing",
    "Hold",
    "Part",
    "Pause",
    "Repeat",
    "Reply",
    "Verbatim",
    "chat_json",
    "chat_stream",
    "error",
    "event_stream",
    "json_reply",
    "messages_json",
    "messages_stream",
    "responses_json",
    "responses_stream",
    "sse",
]


def error(
    status: int, body: str | bytes | Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Reply:
    """An error reply. body: a message, put into OpenAI's error object; any other JSON object; or bytes as they are."""
    if isinstance(body, bytes):
        return Reply(status, headers or {}, (body,), "length")
    if isinstance(body, str):
        body = {"error": {"message": body, "type": None, "code": None}}
    return json_reply(body, status, headers)
