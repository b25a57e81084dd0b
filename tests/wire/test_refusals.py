"""What providers say that they will not take, and what only looks like it (quirks D20, E05)."""

import json
from typing import Any

import pytest
from error_words import ECHOES, FIELDS, IMAGES, OTHERS, PARTS, SEALS, detail, numbered, openai
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.errors import ModelError
from mini_agent.wire.failures import failure, failure_inside

CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x", "reasoning": "r"}],
    "tools": [],
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": 5,
    "reasoning_effort": "low",
    "temperature": 0.2,
    "thinking": {"type": "enabled"},
    "parallel_tool_calls": True,
}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "input": [{"type": "message", "role": "user", "content": []}],
    "instructions": "s",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "low", "summary": "auto"},
    "stream": True,
}
SEALED = {"type": "reasoning", "summary": [], "encrypted_content": "E"}
THOUGHT = {"type": "thinking", "thinking": "t", "signature": "S"}
CALLS = {"role": "assistant", "content": None, "reasoning_content": "r"}
PICTURES = (
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    {"type": "input_image", "image_url": "data:image/png;base64,AA"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
)


def got(status: int, payload: Any, asked: dict[str, Any] | None = None) -> ModelError:
    body = payload if isinstance(payload, str) else json.dumps(payload)
    return failure(status, {}, body.encode(), now=0, asked=CHAT if asked is None else asked)


@pytest.mark.parametrize(("payload", "field"), FIELDS, ids=numbered(FIELDS))
@pytest.mark.parametrize("status", [400, 422])
def test_d20_a_field_that_is_not_taken_is_named(payload: Any, field: str, status: int) -> None:
    error = got(status, payload)
    assert (error.refused, error.kind, error.retryable) == (field, "bad_request", False)
    assert error.hint is None


@pytest.mark.parametrize("payload", [row[0] for row in FIELDS], ids=numbered(FIELDS))
def test_d20_only_a_field_that_was_sent_with_a_status_that_is_about_it(payload: Any) -> None:
    least = {name: CHAT[name] for name in ("model", "messages", "stream")}
    assert got(400, payload, least).refused is None
    assert failure(400, {}, json.dumps(payload).encode(), now=0).refused is None
    for status in (401, 403, 404, 429, 500):
        assert got(status, payload).refused is None


@pytest.mark.parametrize("payload", OTHERS, ids=numbered(OTHERS))
def test_d20_other_errors_name_no_field(payload: Any) -> None:
    error = got(400, payload, {**CHAT, "messages": CHAT["messages"][:1]})
    assert (error.refused, error.kind) == (None, "bad_request")


@pytest.mark.parametrize(("payload", "refused"), PARTS, ids=numbered(PARTS))
def test_d20_a_part_of_an_optional_field_counts_as_the_field(payload: Any, refused: str | None) -> None:
    """`reasoning`, which is also what a model thought, is named so that the two can be told apart."""
    assert got(400, payload, RESPONSES).refused == refused


@pytest.mark.parametrize("word", ["true", "false"])
def test_r4_the_servers_veto_is_about_the_same_request(word: str) -> None:
    body = json.dumps(openai("Unknown parameter: 'stream_options'.")).encode()
    assert failure(400, {"x-should-retry": word}, body, now=0, asked=CHAT).veto is None
    assert failure(400, {"x-should-retry": word}, body, now=0).veto is (word == "true")


def test_d20_a_field_is_refused_inside_a_success_too() -> None:
    payload = openai("Unknown parameter: 'stream_options'.", param="stream_options", code="unknown_parameter")
    assert failure_inside(payload, CHAT).refused == "stream_options"
    assert failure_inside({"error": {**payload["error"], "code": 500}}, CHAT).refused is None


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture["type"])
@pytest.mark.parametrize(("status", "payload"), IMAGES, ids=numbered(IMAGES))
def test_images_that_are_not_taken_are_named_where_some_were_sent(
    status: int, payload: Any, picture: dict[str, Any]
) -> None:
    field = "input" if picture["type"] == "input_image" else "messages"
    asked = {"model": "m", field: [{"role": "user", "content": [picture]}], "temperature": 0.2}
    error = got(status, payload, asked)
    assert (error.refused, error.retryable) == ("images", False)
    assert error.kind == ("too_large" if status == 413 else "bad_request")
    assert failure_inside(payload, asked).refused == "images"
    assert got(status, payload, {"model": "m", field: [{"role": "user", "content": "hi"}]}).refused is None


def test_an_image_is_not_what_every_error_is_about() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": [PICTURES[0]]}], "temperature": 0.2}
    for status, payload in (
        (429, openai("Rate limit reached for images per minute")),
        (401, openai("does not support image")),
        (400, openai("maximum context length is 8192 tokens, image input included")),
        (400, openai("Model not found")),
        (404, openai("No endpoints found for missing/model.")),
        (500, openai("internal error")),
    ):
        assert got(status, payload, asked).refused is None
    assert got(400, openai("Unknown parameter: 'temperature'."), asked).refused == "temperature"


def asked_with(*parts: dict[str, Any]) -> dict[str, Any]:
    content = [part for part in parts if part["type"] == "thinking"]
    items = [part for part in parts if part["type"] == "reasoning"]
    return {"model": "m", "messages": [{"role": "assistant", "content": content}], "input": items}


@pytest.mark.parametrize("part", [SEALED, THOUGHT], ids=["item", "block"])
@pytest.mark.parametrize(("status", "payload"), SEALS, ids=numbered(SEALS))
def test_e05_reasoning_that_is_not_taken_back_is_named(
    status: int, payload: Any, part: dict[str, Any]
) -> None:
    error = got(status, payload, asked_with(part))
    assert (error.refused, error.retryable, error.kind) == ("reasoning", False, "bad_request")
    assert failure_inside(payload, asked_with(part)).refused == "reasoning"


@pytest.mark.parametrize("text", ECHOES)
@pytest.mark.parametrize("entry", [CALLS, {"role": "assistant", "content": "x"}], ids=["sent", "not sent"])
def test_e05_complaints_about_the_echo_are_named_either_way(text: str, entry: dict[str, Any]) -> None:
    asked = {"model": "m", "messages": [entry], "thinking": {"type": "enabled"}}
    error = got(400, openai(text), asked)
    assert (error.refused, error.retryable) == ("reasoning", False)


@pytest.mark.parametrize(
    "payload",
    [
        {"detail": [detail("body", "messages", 2, "assistant", "reasoning")]},
        {"message": "messages.1.reasoning: Extra inputs are not permitted"},
        {"message": "('messages.1' : property 'reasoning' is unsupported)"},
        {"message": "messages[1]: unknown field `reasoning`, expected `role`"},
    ],
)
def test_e05_a_field_of_a_message_that_holds_reasoning_is_reasoning(payload: Any) -> None:
    asked = {**CHAT, "reasoning": {"effort": "low"}}
    assert got(400, payload, asked).refused == "reasoning"
    assert got(400, payload, {**asked, "messages": CHAT["messages"][:1]}).refused is None


@given(
    st.integers(300, 599), st.text(max_size=300), st.sampled_from(["m", CHAT, RESPONSES, asked_with(SEALED)])
)
def test_no_text_breaks_the_error_path(status: int, text: str, asked: Any) -> None:
    error = failure(status, {}, openai_bytes(text), now=0, asked=asked if isinstance(asked, dict) else None)
    assert error.refused in {None, "images", "reasoning", "/reasoning", *CHAT, *RESPONSES}
    assert error.info().message


def openai_bytes(text: str) -> bytes:
    return json.dumps(openai(text)).encode()


@pytest.mark.parametrize(
    "text",
    ["a" * 60000, "a." * 30000, "a_" * 30000, "a: " * 20000, "'" * 60000, "[" * 60000, "unknown " * 8000, "-> " * 20000],
)  # fmt: skip
def test_a_long_message_takes_no_long_time(text: str) -> None:
    """A pattern that looks for a path must not look for one from every letter of another: that would not end in time."""
    assert got(400, openai(text), asked_with(THOUGHT)).kind == "bad_request"
