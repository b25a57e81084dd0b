"""The project's model against a real server, in each family: what it answers, how it ends, what it refuses."""

from contextlib import aclosing, suppress
from typing import Any

import msgspec
import pytest
from real_server import MODEL

from mini_agent.core.errors import EmptyAnswerError, ModelError
from mini_agent.core.events import (
    AttemptProgress,
    ChannelToken,
    Completed,
    FirstToken,
    StreamEvent,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.history import Conversation
from mini_agent.core.messages import (
    AnyBlock,
    Message,
    Reasoning,
    Request,
    Response,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from mini_agent.core.profile import Api
from mini_agent.lab.rules import violations
from mini_agent.lab.seals import sign
from mini_agent.models.base import complete
from mini_agent.wire.adapters import adapter

pytestmark = pytest.mark.real

READ = ToolSpec(
    "read_file",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
MUST_CALL: dict[Api, dict[str, Any]] = {
    "chat": {"tool_choice": "required"},
    "responses": {"tool_choice": "required"},
    "messages": {"tool_choice": {"type": "any"}},
}
THINKS = {"chat_template_kwargs": {"enable_thinking": True}}
FIELDS: dict[Api, str] = {
    "chat": "reasoning_content",
    "responses": "reasoning_item",
    "messages": "thinking",
}
"""What a block of reasoning is called that came in this family."""

THOUGHT = "The file has to be read.\n"
LONG = 2000
"""Tokens: more than are generated while a test looks away."""


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def said(*blocks: AnyBlock) -> Message:
    return Message("assistant", blocks)


def results(*given: ToolResult) -> Message:
    return Message("tool", given)


def asked(*messages: Message, **fields: Any) -> Request:
    return Request(messages, model=MODEL, **{"max_tokens": 60, **fields})


# So small a model does what it was shown: each history holds the like of what is wanted next.
GREETED = (user("Say hi"), said(Text("Hi!")), user("Say hi"), said(Text("Hi!")), user("Say hi"))
COUNTED = user(" ".join(map(str, range(1, 21))))


def having_read(api: Api) -> tuple[Message, ...]:
    """Two files were read, each after a thought, and a third is to be."""
    messages: list[Message] = []
    for name in ("a.txt", "b.txt"):
        call = ToolCall(f"call_{name[0]}", "read_file", {"path": name})
        messages += (
            user(f"Read {name}"),
            said(Reasoning(THOUGHT.strip(), field=FIELDS[api]), call),
            results(ToolResult("hello", call_id=call.id)),
            said(Text("It says hello.")),
        )
    return (*messages, user("Read c.txt"))


def comparable(response: Response) -> Response:
    """A response without what differs from one request to the next."""
    usage = msgspec.structs.replace(response.usage, cached_tokens=None)
    return msgspec.structs.replace(response, id="", usage=usage)


async def events_of(model, request: Request) -> list[StreamEvent]:
    async with aclosing(model.stream(request)) as stream:
        return [event async for event in stream]


async def refusal(model, request: Request) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await complete(model, request)
    return caught.value


async def test_an_answer_streams_and_is_the_same_in_one_piece(real_server, api):
    async with real_server.model(real_server.profile(api)) as model:
        events = await events_of(model, asked(*GREETED))
        whole = await complete(model, asked(*GREETED, stream=False))
    tokens = [event for event in events if isinstance(event, ChannelToken)]
    assert isinstance(events[0], StreamStarted)
    assert [type(event) for event in events].count(FirstToken) == 1
    assert [token.text for token in tokens] == ["Hi", "!"]
    assert isinstance(events[-1], Completed)
    streamed = events[-1].response
    assert (streamed.text, streamed.stop_reason, streamed.model) == ("Hi!", "end_turn", MODEL)
    assert (streamed.usage.input_tokens, streamed.usage.output_tokens) == (41, 3)
    assert streamed.usage.cached_tokens is not None
    assert comparable(whole) == comparable(streamed)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_cap_on_tokens_ends_an_answer(real_server, api, stream):
    async with real_server.model(real_server.profile(api)) as model:
        response = await complete(model, asked(COUNTED, max_tokens=5, stream=stream))
    assert response.usage.output_tokens == 5
    # In Responses this server says that such an answer was completed, and says nothing else of it.
    assert response.stop_reason == ("end_turn" if api == "responses" else "max_tokens")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_reasoning_and_a_call_come_and_go_back(real_server, api, stream):
    request = asked(*having_read(api), tools=(READ,), stream=stream)
    async with real_server.model(real_server.profile(api, **MUST_CALL[api], **THINKS)) as model:
        events = await events_of(model, request)
    answer = events[-1].response
    thought, call = answer.blocks
    assert (thought.text, thought.field) == (THOUGHT, FIELDS[api])
    assert (call.name, call.arguments, call.invalid) == ("read_file", {"path": "c.txt"}, None)
    assert (answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens) == (
        "tool_use",
        220,
        39,
    )
    pieces = [event for event in events if isinstance(event, ToolCallDelta)]
    assert msgspec.json.decode("".join(piece.arguments for piece in pieces)) == {"path": "c.txt"}
    assert not stream or len(pieces) > 1

    done = results(ToolResult("hello", call_id=call.id))
    history = (*request.messages, answer.message, done)
    thoughtless = (*request.messages, said(call), done)
    async with real_server.model(real_server.profile(api)) as model:
        last = await complete(model, msgspec.structs.replace(request, messages=history))
        without = await complete(model, msgspec.structs.replace(request, messages=thoughtless))
    assert (last.text, last.stop_reason) == ("It says hello.", "end_turn")
    # The server has read the thought that was sent back.
    assert last.usage.input_tokens == without.usage.input_tokens + 17


def torn() -> Conversation:
    """What is left of turns that were interrupted: half an answer, a call that was not run."""
    conversation = Conversation()
    conversation.add_user("Say \ud83d hi")
    conversation.add_partial("Hel")
    conversation.add_user("Read a.txt")
    conversation.add_response(
        Response((ToolCall("a", "read_file", {"path": "a.txt"}), ToolCall("b", "no tool", {}, "not JSON")))
    )
    conversation.add_result(ToolResult("no such file", is_error=True, call_id="a"))
    conversation.add_user("Say hi")
    return conversation


def sealed(api: Api) -> Conversation:
    """A thought in the form in which its provider wants it back, and calls side by side."""
    thought = Reasoning("I read both.", field=FIELDS[api])
    if api == "messages":
        thought = msgspec.structs.replace(thought, signature=sign(thought.text))
    both = tuple(ToolCall(name, "read_file", {"path": f"{name}.txt"}) for name in "ab")
    # A sealed item of reasoning is what OpenAI wants, and what this server refuses.
    before = () if api == "responses" else (thought,)
    return Conversation(
        [
            user("Read a.txt and b.txt 🙂"),
            said(*before, Text("Both?"), *both),
            results(*(ToolResult("hello", call_id=call.id) for call in both)),
            said(Text("They say hello.")),
            user("Say hi"),
        ]
    )


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("history", ["torn", "sealed"])
async def test_the_lab_and_the_server_take_the_same_requests(real_server, api, history, stream):
    conversation = torn() if history == "torn" else sealed(api)
    request = asked(*conversation.sendable(), system="Be kind.", tools=(READ,), max_tokens=1, stream=stream)
    profile = real_server.profile(api)
    assert violations(api, adapter(api).encode(request, profile, frozenset())) == []
    async with real_server.model(profile) as model:
        with suppress(EmptyAnswerError):  # an answer all the same
            assert (await complete(model, request)).usage.output_tokens == 1


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_cancel_frees_the_slot(real_server, api, stream):
    generated = real_server.count("tokens_predicted_total")
    async with real_server.model(real_server.profile(api)) as model:
        async with aclosing(model.stream(asked(COUNTED, max_tokens=LONG, stream=stream))) as events:
            async for event in events:
                begun = isinstance(event, ChannelToken) or (
                    not stream and isinstance(event, AttemptProgress) and event.phase == "connected"
                )
                if begun:
                    while '"is_processing":true' not in real_server.get("/slots"):
                        pass  # it has the request, and is about to begin
                    break
        # There is one slot: this is not answered before the other has let go of it.
        await complete(model, asked(*GREETED))
    assert real_server.count("tokens_predicted_total") - generated < LONG


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_prompt_longer_than_the_window_is_an_overflow(real_server, api, stream):
    async with real_server.model(real_server.profile(api)) as model:
        error = await refusal(model, asked(user("word " * 4000), stream=stream))
    assert (error.kind, error.status, error.retryable) == ("context_overflow", 400, False)
    assert error.provider_type == "exceed_context_size_error"


async def test_what_is_wrong_with_a_request_is_said(real_server, api):
    async with real_server.model(real_server.profile(api, temperature="warm")) as model:
        error = await refusal(model, asked(*GREETED))
    assert (error.kind, error.status, error.retryable) == ("bad_request", 400, False)
    assert "temperature" in error.message


async def test_a_wrong_key_is_said(real_server, api):
    async with real_server.model(real_server.profile(api), key="wrong") as model:
        error = await refusal(model, asked(*GREETED))
    assert (error.kind, error.status, error.hint) == ("auth", 401, "Check the key.")


async def test_a_wrong_address_is_said(real_server, api):
    profile = real_server.profile(api)
    profile = msgspec.structs.replace(profile, base_url=f"{profile.base_url}/nowhere")
    async with real_server.model(profile) as model:
        error = await refusal(model, asked(*GREETED))
    assert (error.kind, error.status) == ("bad_request", 404)
    assert "base URL" in error.hint


async def test_any_name_is_the_one_model_of_a_server_that_has_one(real_server, api):
    async with real_server.model(real_server.profile(api)) as model:
        response = await complete(model, msgspec.structs.replace(asked(*GREETED), model="nobody"))
    assert response.text == "Hi!"
