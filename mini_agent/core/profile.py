"""A vendor as a value: everything that differs between endpoints of one API family (product W8)."""

from typing import Annotated, Any, Literal, get_args

import msgspec

Api = Literal["chat", "responses", "messages"]
"""The API families: chat completions, Responses, Messages."""

APIS: tuple[Api, ...] = get_args(Api)

EchoReasoning = Literal["never", "with_tool_calls", "always"]
"""Which assistant messages carry their reasoning back: none, those of turns in which a tool was called, all."""

Effort = Literal["off", "low", "medium", "high"]
"""How much the model should think before it answers."""

EffortKey = Literal["default", "off", "low", "medium", "high"]
"""A level, or where none was asked for."""

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]
_Count = Annotated[int, msgspec.Meta(ge=1)]


class Deadlines(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds; 0 means off (product W9)."""

    connect_s: _Seconds = 10
    first_event_s: _Seconds = 300
    idle_s: _Seconds = 120
    stall_s: _Seconds = 300
    total_s: _Seconds = 3600
    whole_answer_s: _Seconds = 600
    """Stands for first_event_s where streaming is off."""


class Peak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hours in which a price is multiplied. hours: pairs of hours of the day, local to `utc_offset_h`. days: 1 is
    Monday.
    """

    factor: float
    hours: tuple[tuple[float, float], ...]
    days: tuple[int, ...] = (1, 2, 3, 4, 5)
    utc_offset_h: float = 0


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Per million tokens, in `currency` (ISO 4217). None where the vendor has no price of its own for it."""

    input: _Amount
    output: _Amount
    cached: _Amount | None = None
    cache_write: _Amount | None = None
    currency: str = "USD"
    peak: Peak | None = None


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of one model. window, max_output: tokens."""

    window: _Count | None = None
    max_output: _Count | None = None
    price: Price | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One vendor.

    Who and where: base_url: of the family `api`. families: the other families it speaks, each with the fields that
    stand there in place of these, its base_url first. hosts: the hosts that are this vendor's own, with a port where
    only one is: its key goes there and nowhere else unless the profile was named. key_env: the variables that hold the
    key, the first that is set counts; empty where none is needed. key_header, key_prefix: how the key is sent. model:
    the default one.

    What is sent: headers, extra_body: added to every request. refuses: top-level fields that are never sent. rename:
    our name of a top-level field to the vendor's. effort: the fields that ask for a level of thinking, `default` where
    none was asked for (some vendors hide what the model thinks unless they are asked). system_role: the role of the
    system prompt. echo_reasoning, echo_field: which reasoning goes back, and in which field; in `reasoning_details` the
    whole sequence goes back as it came (OpenRouter). echo_missing: what stands for the reasoning of a message that has
    none, because another model wrote it, where the vendor refuses a history without it (DeepSeek, Moonshot). echo_extra:
    whether the unknown keys of a call go back; what a vendor sent it takes, but strict ones refuse those of another.
    call_id_chars: the length of a call's id where only letters and digits are taken. bridge: what the assistant says
    between tool results and a user's message where the vendor refuses them side by side (Mistral). default_max_tokens:
    where the family needs a cap.

    What comes: reasoning_fields: where reasoning may sit in a delta, in order of trust. usage_paths: where usage may
    sit in a chunk, dotted, a number for a place in a list; the first that is there counts. end_marks: literals that end a
    stream; "" is an event whose data is empty. end_events: names of events that do. end_when: fields of a payload (dotted)
    and the value with which each ends the stream. doom_event: the type of frames that say the answer repeats itself.
    """

    name: str = ""
    title: str = ""
    api: Api = "chat"
    base_url: str = ""
    families: dict[Api, dict[str, Any]] = {}
    hosts: tuple[str, ...] = ()
    key_env: tuple[str, ...] = ()
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    ca_file: str | None = None
    model: str = ""
    models: dict[str, ModelFacts] = {}

    headers: dict[str, str] = {}
    extra_body: dict[str, Any] = {}
    refuses: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    effort: dict[EffortKey, dict[str, Any]] = {}
    system_role: Literal["system", "developer"] = "system"
    echo_reasoning: EchoReasoning = "never"
    echo_field: str = "reasoning_content"
    echo_missing: str | None = None
    echo_extra: bool = True
    call_id_chars: Annotated[int, msgspec.Meta(ge=8, le=64)] | None = None
    bridge: str = ""
    default_max_tokens: _Count | None = None

    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
    usage_paths: tuple[str, ...] = ("usage",)
    end_marks: tuple[str, ...] = ("[DONE]", "DONE")
    end_events: tuple[str, ...] = ()
    end_when: dict[str, Any] = {}
    doom_event: str | None = None
    deadlines: Deadlines = Deadlines()

    def facts(self, model: str) -> ModelFacts:
        """What is known of a model, nothing where it is not listed."""
        return self.models.get(model, ModelFacts())
