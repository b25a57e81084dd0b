"""Answers of a real server, recorded: they are decoded also where there is no server.

llama.cpp of October 2026 (llama_server.py started it) wrote them, byte for byte, as it answered the requests of
test_real_server.py: `call` is a thought and a call, `cut` a thought and a text that was cut by the cap. What is its own:
Responses events without any index, their reasoning beside an empty `encrypted_content`, and a cut answer that is called
completed; blocks of Messages that begin before the one ahead has ended, whose (empty) signature comes after both.
"""

import sys
from pathlib import Path

import msgspec
import pytest

from mini_agent.core.messages import Reasoning, Response, Text, ToolCall, Usage
from mini_agent.core.profile import APIS
from mini_agent.wire.failures import failure
from mini_agent.wire.profiles import shipped, speaking

sys.path.insert(0, str(Path(__file__).parents[1] / "wire"))
from family_player import answer

RECORDED = Path(__file__).with_name("recorded")
OVERFLOW = (
    b'{"error":{"code":400,"message":"request (4010 tokens) exceeds the available context size (2560 tokens), '
    b'try increasing it","type":"exceed_context_size_error","n_prompt_tokens":4010,"n_ctx":2560}}'
)


def recorded(api: str, name: str) -> Response:
    """A recorded answer, without what is made up anew for each: ids, and the word and the place of reasoning."""
    response = answer(api, (RECORDED.joinpath(name).read_bytes(),), speaking(shipped()["llama.cpp"], api))
    blocks = []
    for block in response.blocks:
        match block:
            case Reasoning():
                assert (
                    block.field
                    == {
                        "chat": "reasoning_content",
                        "responses": "reasoning_item",
                        "messages": "thinking",
                    }[api]
                )
                assert bool(block.id) == (api == "responses")
                assert not block.signature
                assert not block.encrypted
                blocks.append(Reasoning(block.text))
            case ToolCall():
                assert block.id
                blocks.append(msgspec.structs.replace(block, id=""))
            case _:
                blocks.append(block)
    assert response.id
    assert response.usage.cached_tokens is not None
    usage = msgspec.structs.replace(response.usage, cached_tokens=None)
    return msgspec.structs.replace(
        response, blocks=tuple(blocks), id="", model="", raw_stop_reason=None, usage=usage
    )


@pytest.mark.parametrize("form", ["txt", "json"], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", APIS)
def test_a_thought_and_a_call(api, form):
    call = ToolCall("", "read_file", {"path": "c.txt"})
    assert recorded(api, f"{api}_call.{form}") == Response(
        (Reasoning("The file has to be read.\n"), call), "tool_use", usage=Usage(220, 39)
    )


@pytest.mark.parametrize("form", ["txt", "json"], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", APIS)
def test_an_answer_that_was_cut(api, form):
    stop = "end_turn" if api == "responses" else "max_tokens"
    assert recorded(api, f"{api}_cut.{form}") == Response(
        (Reasoning("\nThis is a common"), Text("\nThis is")), stop, usage=Usage(45, 12)
    )


def test_the_window_is_too_small():
    error = failure(400, {"content-type": "application/json; charset=utf-8"}, OVERFLOW, now=0)
    assert (error.kind, error.retryable) == ("context_overflow", False)
