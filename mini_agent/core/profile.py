"""A vendor as a value: everything that differs between endpoints of one API family (product W8)."""

from typing import Any, Literal

import msgspec

Api = Literal["chat"]
"""The API families that are spoken so far."""

EchoReasoning = Literal["never", "with_tool_calls", "always"]
"""Which assistant messages carry their reasoning back: none, those of turns in which a tool was called, all."""


class Deadlines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds; 0 means off (product W9)."""

    connect_s: float = 10
    first_event_s: float = 300
    idle_s: float = 120
    stall_s: float = 300
    total_s: float = 3600
    whole_answer_s: float = 600
    """Stands for first_event_s where streaming is off."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One vendor.

    hosts: the hosts that are this vendor's own: its key goes there and nowhere else unless the profile was named.
    key_env: the variable that holds the key, "" where none is needed. reasoning_fields: where reasoning may sit in a
    delta, in order of trust. end_marks: literals that end a stream. window: tokens of context, None where unknown.
    """

    name: str = ""
    title: str = ""
    api: Api = "chat"
    base_url: str = ""
    hosts: tuple[str, ...] = ()
    key_env: str = ""
    model: str = ""
    window: int | None = None
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
    echo_reasoning: EchoReasoning = "never"
    echo_field: str = "reasoning_content"
    end_marks: tuple[str, ...] = ("[DONE]", "DONE")
    max_tokens_field: str = "max_tokens"
    stream_usage: bool = True
    headers: dict[str, str] = {}
    extra_body: dict[str, Any] = {}
    deadlines: Deadlines = Deadlines()
