"""Errors over real sockets: what they say, and what the next request then leaves out."""

import json
from contextlib import asynccontextmanager

import msgspec
import pytest

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.core.errors import ModelError
from mini_agent.core.events import Completed
from mini_agent.core.messages import Image, Message, Reasoning, Request, Text, ToolCall, ToolResult
from mini_agent.core.profile import Profile
from mini_agent.lab.replies import Reply, error, event_stream
from mini_agent.lab.server import LabServer
from mini_agent.models.base import new_attempt
from mini_agent.models.http import HttpModel
from mini_agent.wire.overflow import LARGE_BYTES
from mini_agent.wire.profiles import shipped
from mini_agent.wire.transport import Transport

HI = Message("user", (Text("hi"),))
REQUEST = Request((HI,), model="m")
HELLO = Answer((TextPiece("hello"),))
TOO_LARGE = "Request too large for m on tokens per min (TPM): Limit 8000, Requested 34031"
TOO_SOON = "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Try again in 2s"
ONE = b'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n'


@asynccontextmanager
async def lab(*script, profile=None, **server):
    """A server that answers so, and a model on it."""
    async with LabServer(list(script), **server) as one:
        made = msgspec.structs.replace(profile or Profile(name="generic"), base_url=one.base_url)
        model = HttpModel(made, "", Transport(connect_s=10), user_agent="test")
        try:
            yield model, one
        finally:
            await model.aclose()


async def ask(model, request=REQUEST, without=frozenset()):
    """The text of the answer, asked for without these."""
    text = ""
    async for event in model.stream(request, new_attempt(without=frozenset(without))):
        if isinstance(event, Completed):
            text = event.response.text
    return text


async def fails(model, request=REQUEST, without=frozenset()):
    with pytest.raises(ModelError) as raised:
        await ask(model, request, without)
    return raised.value


def no(status, message, headers=None, **fields):
    """A refusal as OpenAI words one."""
    return error(status, {"error": {"message": message, **fields}}, headers)


def unstreamed(request):
    return msgspec.structs.replace(request, stream=False)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1.5", 1.5),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("-5", None),
        ("nan", None),
        ("1e400", None),
        ("soon", None),
    ],
)
async def test_d01_the_wait_that_a_header_names(value, seconds):
    async with lab(error(429, "slow down", {"retry-after": value})) as (model, _):
        failed = await fails(model)
    assert (failed.kind, failed.retryable, failed.retry_after_s) == ("rate_limit", True, seconds)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (no(429, "You exceeded your current quota", code="insufficient_quota"), "current quota"),
        (no(429, "Quota exceeded for requests per day"), "per day"),
        (no(429, "limit reached", type="usage_limit_reached", resets_in_seconds=9568), "limit reached"),
        (no(402, "Insufficient Balance"), "Insufficient Balance"),
    ],
    ids=["code", "words", "renewed", "402"],
)
async def test_d04_a_spent_quota_ends_it_at_once_with_the_providers_words(reply, said):
    async with lab(reply) as (model, _):
        failed = await fails(model)
    assert (failed.kind, failed.retryable) == ("quota", False)
    assert said in failed.message
    assert "used up" in failed.hint


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529])
async def test_d05_worth_another_try(status):
    async with lab(error(status, b"")) as (model, _):
        assert (await fails(model)).retryable


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 501, 505])
async def test_d05_not_worth_another_try(status):
    async with lab(error(status, b"")) as (model, _):
        assert not (await fails(model)).retryable


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'[{"error":{"code":400,"message":"m"}}]', "m"),
        (b'{"error":"m"}', "m"),
        (b'{"detail":[{"msg":"m"}]}', "m"),
        (b"", "with an empty body"),
        (b"\xff", "\ufffd"),
        (b"<html><title>m</title></html>", "m"),
    ],
)
async def test_d07_every_body_becomes_a_line(body, said):
    async with lab(error(400, body)) as (model, _):
        failed = await fails(model)
    assert failed.status == 400
    assert failed.message.startswith("HTTP 400")
    assert failed.message.endswith(said)


async def test_d20_a_refused_field_is_named_and_left_out_of_the_next_request():
    refusal = {"detail": [{"loc": ["body", "stream_options"], "msg": "extra fields not permitted"}]}
    async with lab(error(422, refusal), HELLO) as (model, server):
        refused = (await fails(model)).refused
        assert refused == "stream_options"
        assert await ask(model, without={refused}) == "hello"
        assert ["stream_options" in one.json for one in server.requests] == [True, False]


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
async def test_d20_every_family_leaves_out_what_was_refused_under_the_name_it_was_sent(api):
    profile = Profile(api=api, extra_body={"top_k": 1}, rename={"top_k": "topK"})
    message = "Unknown parameter: 'topK'."
    refusal = {"error": {"message": message, "param": "topK", "code": "unknown_parameter"}}
    async with lab(error(400, refusal), HELLO, profile=profile) as (model, server):
        refused = (await fails(model)).refused
        assert refused == "topK"
        assert await ask(model, without={refused}) == "hello"
        assert ["topK" in one.json for one in server.requests] == [True, False]


async def test_d20_what_was_not_sent_was_not_refused():
    refusal = {"error": {"message": "Unknown parameter: 'stream_options'.", "code": "unknown_parameter"}}
    async with lab(error(400, refusal), error(400, refusal)) as (model, _):
        assert (await fails(model, without={"stream_options"})).refused is None
        assert (await fails(model, unstreamed(REQUEST))).refused is None


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    "reply",
    [
        no(404, "No endpoints found that support image input"),
        no(
            500,
            "image input is not supported - hint: you may need to provide the mmproj",
            type="server_error",
        ),
        no(400, "unknown variant `image_url`, expected `text`"),
        Reply(200, {}, (b'{"error":{"message":"m is not a multimodal model","code":400}}',), "length"),
        event_stream(b'data: {"error":{"message":"image input is not supported","code":500}}\n\n'),
    ],
    ids=["404", "500", "400", "inside-a-200", "event"],
)
async def test_images_that_are_refused_are_named_where_some_were_sent(reply, stream):
    picture = Request((Message("user", (Text("see"), Image("image/png", b"x"))),), model="m", stream=stream)
    async with lab(reply, reply) as (model, _):
        failed = await fails(model, picture)
        assert (failed.refused, failed.retryable) == ("images", False)
        assert (await fails(model, msgspec.structs.replace(REQUEST, stream=stream))).refused is None


SEALED = {
    "messages": Reasoning("hm", field="thinking", signature="FORGED"),
    "responses": Reasoning("hm", field="reasoning_item", encrypted="FORGED", id="rs_1"),
}
REFUSALS = {
    "messages": no(400, "messages.1.content.0: Invalid `signature` in `thinking` block"),
    "responses": no(400, "The encrypted content could not be verified.", code="invalid_encrypted_content"),
}


@pytest.mark.parametrize("api", [*SEALED])
async def test_e05_a_seal_that_is_refused_is_named_and_left_out_of_the_next_request(api):
    request = Request((HI, Message("assistant", (SEALED[api], Text("x"))), HI), model="m")
    async with lab(REFUSALS[api], HELLO, profile=Profile(api=api), strict=True) as (model, server):
        refused = (await fails(model, request)).refused
        assert refused == "reasoning"
        assert await ask(model, request, {refused}) == "hello"
        assert [b"FORGED" in one.body for one in server.requests] == [True, False]


THOUGHTFUL = Request(
    (
        HI,
        Message("assistant", (Reasoning("R1", field="reasoning_content"), ToolCall("c1", "ls"))),
        Message("tool", (ToolResult("a", call_id="c1"),)),
        Message("assistant", (Reasoning("R2", field="reasoning_content"), Text("done"))),
        HI,
    ),
    model="m",
)


def thoughts(request):
    return [one.get("reasoning_content") for one in request.json["messages"] if one["role"] == "assistant"]


async def test_e05_a_server_that_misses_the_reasoning_gets_it():
    """DeepSeek behind an address of its own, where nothing says that it wants reasoning back."""
    missing = error(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
    async with lab(missing, HELLO) as (model, server):
        assert (await fails(model, THOUGHTFUL)).refused == "reasoning"
        assert await ask(model, THOUGHTFUL, {"reasoning"}) == "hello"
        assert [thoughts(one) for one in server.requests] == [[None, None], ["R1", "R2"]]


async def test_e05_a_server_that_refuses_the_reasoning_does_not_get_it():
    """An old thinking model under the name of today's vendor."""
    unwanted = error(400, "reasoning_content must not be sent in the input messages")
    async with lab(unwanted, HELLO, profile=shipped()["deepseek"]) as (model, server):
        assert (await fails(model, THOUGHTFUL)).refused == "reasoning"
        assert await ask(model, THOUGHTFUL, {"reasoning"}) == "hello"
        assert [thoughts(one) for one in server.requests] == [["R1", "R2"], [None, None]]


async def test_e05_deepseeks_rule_is_kept_over_all_later_turns():
    async with lab(HELLO, HELLO, profile=shipped()["deepseek"], deepseek=True, strict=True) as (
        model,
        server,
    ):
        assert await ask(model, THOUGHTFUL) == "hello"
        assert server.violations == []
        assert thoughts(server.requests[0]) == ["R1", "R2"]
        content = [one["content"] for one in server.requests[0].json["messages"]]
        assert not any("R1" in str(one) for one in content)


@pytest.mark.parametrize(("effort", "switch"), [("off", "disabled"), ("high", "enabled")])
async def test_e16_deepseeks_own_switch_is_sent_to_an_address_without_a_version(effort, switch):
    async with lab(HELLO) as (_, server):
        bare = server.base_url.removesuffix("/v1")
        profile = msgspec.structs.replace(shipped()["deepseek"], base_url=bare)
        model = HttpModel(profile, "", Transport(connect_s=10), user_agent="test")
        assert await ask(model, msgspec.structs.replace(REQUEST, effort=effort)) == "hello"
        await model.aclose()
        (asked,) = server.requests
        assert asked.path == "/chat/completions"
        assert asked.json["thinking"] == {"type": switch}
        assert ("reasoning_effort" in asked.json) == (effort == "high")


LARGE = Request((Message("user", (Text("x" * LARGE_BYTES),)),), model="m")


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        (
            no(400, "The maximum context length is 8192 tokens, your messages resulted in 9000 tokens"),
            (9000, 8192),
        ),
        (
            no(500, "no room", type="exceed_context_size_error", n_prompt_tokens=4010, n_ctx=2560),
            (4010, 2560),
        ),
        (no(429, TOO_LARGE, {"retry-after": "2"}, type="tokens", code="rate_limit_exceeded"), (34031, 8000)),
        (no(413, TOO_LARGE, type="tokens", code="rate_limit_exceeded"), (34031, 8000)),
        (
            Reply(200, {}, (b'{"error":{"message":"prompt is too long: 9000 tokens > 8192 maximum"}}',)),
            (9000, 8192),
        ),
        (
            event_stream(
                b'event: error\ndata: {"message":"prompt is too long: 9000 tokens > 8192 maximum"}\n\n'
            ),
            (9000, 8192),
        ),
    ],
    ids=["400", "d08-500", "d22-429", "d22-413", "inside-a-200", "event"],
)
async def test_d08_a_request_that_is_too_long_is_told_with_its_numbers(api, reply, numbers):
    async with lab(reply, profile=Profile(api=api)) as (model, _):
        failed = await fails(model)
    assert (failed.kind, failed.retryable) == ("context_overflow", False)
    assert (failed.asked_tokens, failed.limit_tokens) == numbers
    assert all(str(one) in failed.message for one in numbers)
    json.loads(msgspec.json.encode(failed.info()))


@pytest.mark.parametrize(
    ("reply", "small", "large"),
    [
        (error(400, b""), "bad_request", "context_overflow"),
        (error(400, "too many tokens"), "bad_request", "context_overflow"),
        (error(413, b""), "too_large", "too_large"),
        (error(413, b"<html><title>413 Request Entity Too Large</title></html>"), "too_large", "too_large"),
        (error(429, "too many tokens, please wait"), "rate_limit", "rate_limit"),
        (
            event_stream(ONE, b'data: {"error":{"message":"token limit exceeded"}}\n\n'),
            "provider",
            "context_overflow",
        ),
    ],
    ids=["no-body", "weak", "413-empty", "413-html", "throttling", "in-mid-stream"],
)
async def test_d08_what_the_words_leave_open_the_size_of_the_request_decides(reply, small, large):
    async with lab(reply, reply) as (model, _):
        assert (await fails(model)).kind == small
        assert (await fails(model, LARGE)).kind == large


async def test_d22_what_fits_later_is_waited_for():
    async with lab(no(429, TOO_SOON, type="tokens", code="rate_limit_exceeded")) as (model, _):
        failed = await fails(model)
    assert (failed.kind, failed.retryable, failed.retry_after_s) == ("rate_limit", True, 2)
