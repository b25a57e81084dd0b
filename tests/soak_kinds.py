"""Everything that happens to a request in a soak: the faults of providers, of the way to them, and of the model."""

import json
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from soak_provider import WINDOW, Asked, Call, Provider, whole

from mini_agent.core.answers import Answer, ReasoningPiece, TextPiece
from mini_agent.core.messages import StopReason
from mini_agent.lab.replies import error
from mini_agent.lab.server import Faulty, Say
from mini_agent.wire.asked import carries_images, carries_reasoning
from mini_agent.wire.shaping import IMAGES, REASONING

DONE = "completed"
LINE = ("cut", "connection", "protocol")
"""How an attempt ends whose connection fails."""


class Kind(NamedTuple):
    """One thing that may happen.

    ends: how an attempt may end that meets it, `completed` or an error's kind; the first is what it is for. transient:
    whether the same request may succeed a little later.
    """

    name: str
    make: Callable[[Asked, Provider], Say]
    ends: tuple[str, ...]
    fits: Callable[[Asked], bool] = lambda asked: True
    transient: bool = False


def _worded(name: str, words: str, *ends: str, **more: Any) -> Kind:
    """A fault of the lab's own. In `words`, EVENT is any of the answer's events, BYTE any of its bytes."""

    def make(asked: Asked, _: Provider) -> Say:
        answer = asked.normal()
        # A document that is complete is one to its client, who may then ask again on that connection.
        last = asked.events() if asked.request.streams else 0
        spec = words.replace("EVENT", str(asked.rng.randint(0, last)))
        return Faulty(answer, spec.replace("BYTE", str(asked.rng.randint(0, asked.bytes()))))

    return Kind(name, make, ends, **more)


def _refused(name: str, status: int, body: dict[str, Any], *ends: str, **more: Any) -> Kind:
    """An error of a provider's own wording. ASKED and LIMIT in it are tokens."""
    text = json.dumps(body)

    def make(asked: Asked, _: Provider) -> Say:
        # Its own count may be far from ours, and more than there is.
        count = max(asked.tokens, WINDOW) + asked.rng.randint(1, 5_000)
        return error(status, text.replace("ASKED", str(count)).replace("LIMIT", str(WINDOW)).encode())

    return Kind(name, make, ends, **more)


def _said(name: str, make: Callable[[Asked], Answer], *ends: str, **more: Any) -> Kind:
    return Kind(name, lambda asked, _: make(asked), ends or (DONE,), **more)


def _stopped(stop: StopReason) -> Kind:
    def make(asked: Asked) -> Answer:
        calls = asked.calling([asked.call(0)]) if asked.rng.random() < 0.5 else ()
        return asked.said(asked.text(5), calls, stop=stop)

    return _said(f"stop: {stop}", make)


def _openai(message: str, code: str, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": code, "param": None, **more}}


def _key_refused(asked: Asked, provider: Provider) -> Say:
    """The key is in the words, as some providers have it."""
    del asked
    return error(401, _openai(f"Incorrect API key provided: {provider.key}.", "invalid_api_key"))


OPTIONAL = ("temperature", "top_p", "stream_options", "include", "thinking", "reasoning")
"""Fields that can be left out."""

_FIELD_REFUSALS: tuple[Callable[[str], tuple[int, dict[str, Any]]], ...] = (
    lambda name: (400, _openai(f"Unsupported parameter: '{name}'", "unsupported_parameter", param=name)),
    lambda name: (
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": f"{name}: Extra inputs are not permitted"},
        },
    ),
    lambda name: (422, {"detail": [{"loc": ["body", name], "msg": "extra fields not permitted"}]}),
)


def _field_refused(asked: Asked, provider: Provider) -> Say:
    name = asked.rng.choice([name for name in OPTIONAL if name in asked.request.fields])
    provider.refuses(f"/{name}")
    status, body = asked.rng.choice(_FIELD_REFUSALS)(name)
    return error(status, body)


def _images_refused(asked: Asked, provider: Provider) -> Say:
    provider.refuses(IMAGES)
    return error(400, _openai("This model does not support image input.", "unsupported_value"))


def _reasoning_refused(asked: Asked, provider: Provider) -> Say:
    match asked.request.api:
        case "responses":
            provider.refuses(REASONING)
            return error(
                400, _openai("The encrypted content could not be verified.", "invalid_encrypted_content")
            )
        case "messages":
            provider.refuses(REASONING)
            message = "messages.1.content.0: Invalid `signature` in `thinking` block"
            return error(
                400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
            )
        case _:
            return error(400, _openai("The `reasoning_content` must be passed back to the API.", "invalid"))


def _cut_with_calls(asked: Asked) -> Answer:
    """The last call is cut in its arguments, or just behind them."""
    calls = [asked.call(place) for place in range(2)]
    whole_text = calls[1].text
    calls[1] = Call(calls[1].name, whole_text[: asked.rng.randint(1, len(whole_text))])
    return asked.said(asked.text(3), asked.calling(calls), stop="max_tokens")


def _broken_arguments(asked: Asked) -> Answer:
    texts = ('{"token": "x', "[1]", "null", "", '{"token": 7, "size": "many"}', '{"size": 5}', "{}{}")
    calls = [Call("look", asked.rng.choice(texts)), asked.call(1)]
    return asked.said(asked.calling(calls), stop="tool_use")


def _unknown_tool(asked: Asked) -> Answer:
    names = ("functions.look", "lok", "no such tool\n", "", "x" * 200)
    calls = [asked.call(0), Call(asked.rng.choice(names), asked.call(1).text)]
    return asked.said(asked.calling(calls), stop="tool_use")


def _over_and_over(asked: Asked) -> Answer:
    asked.turn.again = tuple(asked.call(place) for place in range(asked.rng.choice((1, 1, 2))))
    return asked.normal()


def _same_ids(asked: Asked) -> Answer:
    ids = asked.rng.choice((["c", "c", "c"], ["", "", "x"], ["call_0", "call_1", "call_0"]))
    return asked.said(asked.calling([asked.call(place) for place in range(3)], ids), stop="tool_use")


def _loop(asked: Asked, piece: type[TextPiece] | type[ReasoningPiece]) -> Answer:
    unit = f"«{asked.number}» Let me try that once more. "
    return asked.said([piece(unit) for _ in range(5_000 // len(unit))], think=False)


def _unsaid(asked: Asked) -> Answer:
    return asked.said(stop="max_tokens", output=0, think=False)


def _plain(asked: Asked) -> bool:
    return not asked.is_summary


KINDS = (
    # The provider says no
    _refused("408", 408, {"message": "not now"}, "provider", transient=True),
    _refused("409", 409, {"message": "not now"}, "provider", transient=True),
    _refused("425", 425, {"message": "not now"}, "provider", transient=True),
    _worded("429", "status=429", "rate_limit", transient=True),
    _worded("429, in 3 s", "status=429 retry-after=3", "rate_limit", transient=True),
    _worded("429, in 100 s", "status=429 retry-after=100", "total_timeout"),
    _worded("429, in an hour", "status=429 retry-after=3600", "rate_limit"),
    _refused("429, in words", 429, _openai("Please try again in 1.5s", "rate_limit_exceeded"), "rate_limit"),
    _worded("500", "status=500", "provider", transient=True),
    _worded("502, a page", "status=502 html", "provider", transient=True),
    _worded("503", "status=503", "overloaded", transient=True),
    _worded("504", "status=504", "provider", transient=True),
    _worded("520", "status=520", "provider", transient=True),
    _worded("529", "status=529", "overloaded", transient=True),
    _worded("503, no use", "status=503 header=x-should-retry:false", "overloaded"),
    _worded("400", "status=400", "bad_request"),
    _worded("400, try again", "status=400 header=x-should-retry:true", "bad_request"),
    Kind("401", _key_refused, ("auth",)),
    _worded("402", "status=402", "quota"),
    _worded("403", "status=403", "auth"),
    _worded("404", "status=404", "bad_request"),
    _worded("413", "status=413", "too_large"),
    _worded("422", "status=422", "bad_request"),
    _refused("quota", 429, _openai("You exceeded your current quota", "insufficient_quota"), "quota"),
    _refused(
        "overflow, OpenAI",
        400,
        _openai(
            "This model's maximum context length is LIMIT tokens. However, your messages resulted in ASKED tokens.",
            "context_length_exceeded",
        ),
        "context_overflow",
    ),
    _refused(
        "overflow, Anthropic",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: ASKED tokens > LIMIT maximum",
            },
        },
        "context_overflow",
    ),
    _refused(
        "overflow, no numbers", 400, _openai("exceeds the context window", "bad_request"), "context_overflow"
    ),
    Kind(
        "a field refused",
        _field_refused,
        ("bad_request",),
        lambda asked: any(name in asked.request.fields for name in OPTIONAL),
    ),
    Kind(
        "images refused",
        _images_refused,
        ("bad_request",),
        lambda asked: carries_images(asked.request.fields),
    ),
    Kind(
        "reasoning refused",
        _reasoning_refused,
        ("bad_request",),
        lambda asked: not asked.deepseek and carries_reasoning(asked.request.fields),
    ),
    # The way there and back
    _worded("reset before anything", "reset", "connection", transient=True),
    _worded("closed before anything", "cut", "connection", transient=True),
    _worded("half a head", "truncate-headers", "connection", transient=True),
    _worded("cut at an event", "cut@EVENT", *LINE, DONE, transient=True),
    _worded("cut at a byte", "cut=BYTE", *LINE, DONE, transient=True),
    _worded("reset at an event", "reset@EVENT", "connection", *LINE, DONE, transient=True),
    _worded("reset at a byte", "reset=BYTE", "connection", *LINE, DONE, transient=True),
    _worded("a broken chunk", "bad-chunk@EVENT", *LINE, DONE, transient=True),
    _worded("no head for ever", "stall", "first_event_timeout", transient=True),
    _worded("no event for ever", "stall@0", "first_event_timeout", transient=True),
    _worded("stalls at an event", "stall@EVENT", "idle_timeout", "first_event_timeout", DONE, transient=True),
    _worded("keep-alives only", "keepalive=0.4@0", "first_event_timeout", transient=True),
    _worded(
        "keep-alives from an event on",
        "keepalive=0.4@EVENT",
        "stall_timeout",
        "first_event_timeout",
        DONE,
        transient=True,
    ),
    _worded("slow to begin", "delay=0.5 first=0.5", DONE),
    _worded("a pause", "pause=0.9@EVENT", DONE),
    _worded("in any pieces", "split=random", DONE),
    _worded("compressed", "gzip", DONE),
    # What is in the stream
    _worded("garbage before it", "garbage@0", "protocol", *LINE, transient=True),
    _worded("garbage in it", "garbage@EVENT", "protocol", *LINE, DONE, transient=True),
    _worded("garbage after it", "garbage-after-end", DONE, "cut"),
    _worded("an error inside", "error-in-200@EVENT", "overloaded", "provider", DONE, transient=True),
    _worded("a page", "html", "protocol"),
    _worded("no end mark", "no-done", DONE, "cut"),
    _worded("no finish reason", "no-finish", DONE, "cut"),
    _worded("neither", "no-finish no-done", "cut", DONE),
    # The model
    _said("empty", lambda asked: asked.said(think=False), "empty", transient=True),
    _said("only thought", lambda asked: asked.said(think=True), "empty", transient=True),
    _said("blank", lambda asked: asked.said(whole(" \n"), think=False), "empty", transient=True),
    _said("a loop in the text", lambda asked: _loop(asked, TextPiece), "repetition"),
    _said("a loop in the thought", lambda asked: _loop(asked, ReasoningPiece), "repetition"),
    _said("calls cut at max_tokens", _cut_with_calls, fits=_plain),
    _said("text cut at max_tokens", lambda asked: asked.said(asked.text(), stop="max_tokens")),
    _said("max_tokens used up in thought", lambda asked: asked.said(stop="max_tokens", think=True)),
    _said("max_tokens before a word", _unsaid),
    _said("an unknown tool", _unknown_tool, fits=_plain),
    _said("broken arguments", _broken_arguments, fits=_plain),
    _said("over and over", _over_and_over, fits=_plain),
    _said("the same ids", _same_ids, fits=_plain),
    _said("the window is full", lambda asked: asked.said(asked.text(), tokens=WINDOW)),
    _stopped("context_overflow"),
    _stopped("refusal"),
    _stopped("content_filter"),
    _stopped("pause"),
    _stopped("other"),
)

FINE = Kind("fine", lambda asked, _: asked.normal(), (DONE,))
TOO_LONG = "too long"
"""Not drawn but true: the request is longer than the provider's window."""

_OVERFLOWS = tuple(kind for kind in KINDS if kind.name.startswith("overflow"))
BY_NAME = {kind.name: kind for kind in (*KINDS, FINE)} | {
    TOO_LONG: Kind(TOO_LONG, _OVERFLOWS[0].make, ("context_overflow",))
}


class Deck:
    """Deals kinds so that each comes as often as any other."""

    def __init__(self, kinds: Iterable[Kind], rng: random.Random) -> None:
        self._kinds = list(kinds)
        self._rng = rng
        self._left: list[Kind] = []

    def draw(self, asked: Asked) -> Kind:
        """The next one that fits, FINE where none does."""
        for round_ in range(2):
            for kind in self._left:
                if kind.fits(asked):
                    self._left.remove(kind)
                    return kind
            if round_ == 0:
                more = list(self._kinds)
                self._rng.shuffle(more)
                self._left += more
        return FINE
