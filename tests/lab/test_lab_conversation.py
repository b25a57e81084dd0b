"""The demo's conversations through each family, over real sockets: the project's own model against the server's rules."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.history import Conversation, repair
from mini_agent.core.messages import (
    Image,
    Message,
    Reasoning,
    Request,
    Response,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from mini_agent.core.profile import Api, Profile
from mini_agent.lab.rules import violations
from mini_agent.lab.server import LabServer
from mini_agent.models.base import complete
from mini_agent.models.http import HttpModel
from mini_agent.wire.adapters import _ADAPTERS
from mini_agent.wire.transport import Transport

TOOLS = tuple(
    ToolSpec(name, name, {"type": "object", "properties": {"path": {"type": "string"}}})
    for name in ("read_file", "write_file", "edit_file", "list_dir", "run_bash")
)
NOTES = "# Notes\n\nmilk\neggs \u2713\n"
PROMPTS = ("read notes.md", "edit notes.md", "write new.txt", "parallel", "read nothing.md", "cut", "hello")


class Talk:
    """A conversation with the model, and a workspace of a few texts for its calls."""

    def __init__(self, model: HttpModel, *, stream: bool) -> None:
        self.files = {"notes.md": NOTES, "b.txt": "beta\n"}
        self.history = Conversation()
        self._model = model
        self._stream = stream

    async def turn(self, prompt: str) -> list[Response]:
        """The responses to a prompt, until one calls no tool."""
        self.history.add_user(prompt)
        responses: list[Response] = []
        while not responses or responses[-1].tool_calls:
            request = Request(
                self.history.sendable(), system="be kind", tools=TOOLS, model="m", stream=self._stream
            )
            response = await complete(self._model, request)
            self.history.add_response(response)
            for call in response.tool_calls:
                self.history.add_result(self._result(call, cut=response.stop_reason == "max_tokens"))
            responses.append(response)
        return responses

    def _result(self, call: ToolCall, *, cut: bool) -> ToolResult:
        if cut or call.invalid:
            return ToolResult("the output was cut, the call was not run", is_error=True, call_id=call.id)
        content, failed = self._run(call.name, call.arguments)
        return ToolResult(content, failed, call.id)

    def _run(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        path = arguments.get("path", ".")
        match name:
            case "list_dir":
                return "\n".join(sorted(self.files)), False
            case "write_file":
                self.files[path] = arguments["content"]
            case "edit_file":
                assert self.files[path].count(arguments["old"]) == 1
                self.files[path] = self.files[path].replace(arguments["old"], arguments["new"])
            case _ if path not in self.files:
                return f"there is no {path}", True
            case "read_file":
                return self.files[path], False
        return "done", False


@asynccontextmanager
async def talk(
    api: Api, *, stream: bool, deepseek: bool = False, **server: Any
) -> AsyncIterator[tuple[Talk, LabServer]]:
    """A conversation over HTTP. deepseek: whether reasoning is wanted back in chat completions."""
    async with LabServer(deepseek=deepseek, **server) as lab:
        profile = Profile(
            api=api,
            base_url=lab.base_url,
            default_max_tokens=4096,
            echo_reasoning="with_tool_calls" if deepseek else "never",
            echo_missing="" if deepseek else None,
        )
        model = HttpModel(profile, "", Transport(connect_s=10), user_agent="test")
        try:
            yield Talk(model, stream=stream), lab
        finally:
            await model.aclose()


@pytest.mark.parametrize("api", _ADAPTERS)
@pytest.mark.parametrize("stream", [True, False])
async def test_the_demo_plays_through_every_family_and_breaks_no_rule(api: Api, stream: bool) -> None:
    async with talk(api, stream=stream, deepseek=api == "chat", strict=True) as (conversation, lab):
        said = {prompt: await conversation.turn(prompt) for prompt in PROMPTS}
        assert lab.violations == []
        assert {request.api for request in lab.requests} == {api}
        assert len(lab.requests) == sum(len(responses) for responses in said.values())
    last = {prompt: responses[-1].text for prompt, responses in said.items()}
    assert "**4 lines**" in last["read notes.md"]
    assert last["edit notes.md"].startswith("Done")
    assert conversation.files["notes.md"] == f"{NOTES}<!-- Edited by the demo model -->\n"
    assert conversation.files["new.txt"] == "Written by the demo model of mini-agent.\n"
    assert "places in one response" in last["parallel"]
    assert "did not work" in last["read nothing.md"]
    assert "there is no nothing.md" in last["read nothing.md"]
    assert [response.stop_reason for response in said["cut"]] == [
        "max_tokens",
        "tool_use",
        "tool_use",
        "end_turn",
    ]
    assert conversation.files["mini-agent-demo.md"].startswith("# Written in two pieces")
    assert "demo model" in last["hello"]
    assert all(response.reasoning for response in said["hello"])


@pytest.mark.parametrize("api", _ADAPTERS)
async def test_streamed_and_whole_are_the_same_conversation(api: Api) -> None:
    histories = []
    for stream in (True, False):
        async with talk(api, stream=stream) as (conversation, _):
            await conversation.turn("read notes.md")
            await conversation.turn("parallel")
        histories.append(conversation.history.messages)
    assert histories[0] == histories[1]


@pytest.mark.parametrize("api", _ADAPTERS)
async def test_no_fault_that_keeps_the_bytes_changes_a_conversation(api: Api) -> None:
    histories = []
    for faults in ([], ["split=3"], ["gzip split=random:5"], ["garbage-after-end"]):
        async with talk(api, stream=True, faults=faults) as (conversation, lab):
            await conversation.turn("edit notes.md")
            assert lab.violations == []
        histories.append(conversation.history.messages)
    assert histories == [histories[0]] * 4


async def test_a_conversation_goes_on_in_another_family() -> None:
    """Reasoning of another family is left out, and nothing else is lost; several servers, as after a restart."""
    history = Conversation()
    for api in (*_ADAPTERS, *reversed(_ADAPTERS)):
        async with talk(api, stream=True, deepseek=api == "chat", strict=True) as (conversation, lab):
            history = conversation.history = Conversation(history.messages)
            for prompt in ("read notes.md", "parallel", "cut", "hello"):
                await conversation.turn(prompt)
            assert lab.violations == []


texts = st.sampled_from(["a", " b ", "", "\n", "end \n", "\u2028x"])
ids = st.sampled_from(["c1", "c2", "call:3", "x y", "", "\u00e9" * 70])
names = st.sampled_from(["read", "bad name", "n" * 90, ""])
thoughts = st.builds(
    Reasoning,
    texts,
    field=st.sampled_from([None, "reasoning_content", "thinking", "redacted_thinking", "reasoning_item"]),
    signature=st.sampled_from([None, "", "sealed"]),
    encrypted=st.sampled_from([None, "sealed"]),
)
answers = st.tuples(
    st.lists(thoughts, max_size=2),
    st.lists(st.builds(Text, texts) | st.builds(ToolCall, ids, names, st.just({"a": 1})), max_size=4),
).map(lambda parts: Message("assistant", (*parts[0], *parts[1])))
results = st.lists(st.builds(ToolResult, texts, st.booleans(), ids), max_size=3).map(
    lambda blocks: Message("tool", tuple(blocks))
)
questions = st.lists(st.builds(Text, texts) | st.just(Image("image/png", b"x")), max_size=2).map(
    lambda blocks: Message("user", (Text("?"), *blocks))
)
histories = st.lists(st.tuples(answers, results, questions), max_size=3).flatmap(
    lambda turns: st.tuples(questions, st.just([message for turn in turns for message in turn])).map(
        lambda parts: (parts[0], *parts[1])
    )
)


@pytest.mark.parametrize("api", _ADAPTERS)
@given(history=histories)
def test_whatever_the_history_holds_what_is_sent_breaks_no_rule(
    api: Api, history: tuple[Message, ...]
) -> None:
    request = Request(tuple(repair(history)), system="be kind", tools=TOOLS, model="m")
    assert violations(api, _ADAPTERS[api].encode(request, Profile(api=api), frozenset())) == []


async def test_what_a_family_seals_comes_back_sealed() -> None:
    """Without it the rules would have said so; this says that there was something to say."""
    for api, sealed in (("messages", "signature"), ("responses", "encrypted")):
        async with talk(api, stream=True) as (conversation, lab):  # type: ignore[arg-type]  both are families
            await conversation.turn("read notes.md")
        (thought,) = (
            block for block in conversation.history.messages[1].blocks if isinstance(block, Reasoning)
        )
        assert getattr(thought, sealed)
        assert getattr(thought, sealed) in lab.requests[1].body.decode()
