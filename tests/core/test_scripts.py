"""The demo scripts, played to their ends against a folder that is a dict."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent.core.answers import Answer
from mini_agent.core.messages import (
    AnyBlock,
    Message,
    Reasoning,
    Request,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from mini_agent.core.scripts import demo_answer

TOOLS = tuple(
    ToolSpec(name, "", {}) for name in ("read_file", "write_file", "edit_file", "list_dir", "run_bash")
)
MOST_STEPS = 4

RunTool = Callable[[str, dict[str, Any]], ToolResult]


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def ask(text: str, tools: tuple[ToolSpec, ...] = TOOLS, **more: Any) -> Answer:
    return demo_answer(Request((user(text),), tools=tools, **more))


def folder(files: dict[str, str]) -> RunTool:
    """The tools over `files`, as strict as the real ones about what an edit quotes."""

    def run(name: str, arguments: dict[str, Any]) -> ToolResult:
        path = arguments.get("path", ".")
        match name:
            case "read_file" if path in files:
                return ToolResult(files[path] or "[The file is empty.]")
            case "write_file":
                files[path] = arguments["content"]
                return ToolResult("written")
            case "edit_file" if files[path].count(arguments["old"]) == 1:
                files[path] = files[path].replace(arguments["old"], arguments["new"])
                return ToolResult("edited")
            case "list_dir":
                return ToolResult("\n".join(files) or "[The folder is empty.]")
            case "run_bash":
                return ToolResult(f"ran {arguments['command']}")
            case _:
                pass
        return ToolResult(f"there is no {path}", is_error=True)

    return run


def play(task: str, run: RunTool) -> list[Answer]:
    """All answers of one turn."""
    messages = [user(task)]
    answers: list[Answer] = []
    while len(answers) <= MOST_STEPS:
        answer = demo_answer(Request(tuple(messages), tools=TOOLS))
        answers.append(answer)
        if not answer.calls:
            return answers
        blocks: list[AnyBlock] = [Reasoning(answer.reasoning), Text(answer.text)]
        results: list[AnyBlock] = []
        for call in answer.calls:
            if answer.stop_reason == "max_tokens":
                blocks.append(ToolCall(call.id, call.name, {}, invalid="cut"))
                results.append(ToolResult("Not run: cut at max_tokens", is_error=True, call_id=call.id))
                continue
            arguments = json.loads(call.arguments)
            result = run(call.name, arguments)
            blocks.append(ToolCall(call.id, call.name, arguments))
            results.append(ToolResult(result.content, result.is_error, call.id))
        messages += [Message("assistant", tuple(blocks)), Message("tool", tuple(results))]
    raise AssertionError(f"{task!r} runs on after {MOST_STEPS} steps")


def called(answers: list[Answer]) -> list[list[str]]:
    return [[call.name for call in answer.calls] for answer in answers]


def test_read_says_something_about_what_it_got() -> None:
    answers = play("read notes.txt", folder({"notes.txt": "milk\neggs"}))
    assert called(answers) == [["read_file"], []]
    assert json.loads(answers[0].calls[0].arguments) == {"path": "notes.txt"}
    assert answers[0].stop_reason == "tool_use"
    assert answers[0].reasoning
    assert "2 lines" in answers[1].text
    assert "milk\neggs" in answers[1].text
    assert "is empty" in play("read a", folder({"a": ""}))[-1].text


def test_edit_quotes_the_real_file_and_changes_it() -> None:
    files = {"a.py": "import os\n\nprint(os.name)\n"}
    answers = play("edit a.py", folder(files))
    assert called(answers) == [["read_file"], ["edit_file"], []]
    assert files["a.py"] == "import os\n\nprint(os.name)\n# Edited by the demo model\n"
    play("edit a.py", folder(files))
    assert files["a.py"] == "import os\n\nprint(os.name)\n# Edited by the demo model, 2 times\n"


def test_edit_of_an_empty_file_says_that_it_leaves_it() -> None:
    answers = play("edit a.py", folder({"a.py": ""}))
    assert called(answers) == [["read_file"], []]
    assert "leave it" in answers[-1].text


def test_write_writes_a_small_file() -> None:
    files: dict[str, str] = {}
    answers = play("write new.py", folder(files))
    assert called(answers) == [["write_file"], []]
    assert files == {"new.py": "# Written by the demo model of mini-agent.\n"}


def test_write_of_json_is_json() -> None:
    files: dict[str, str] = {}
    play("write new.json", folder(files))
    assert "demo model" in json.loads(files["new.json"])


def test_run_shows_the_output() -> None:
    answers = play("run echo hi; ls!", folder({}))
    assert json.loads(answers[0].calls[0].arguments) == {"command": "echo hi; ls!"}
    assert "ran echo hi; ls!" in answers[1].text


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ["list_dir", "list_dir"]),
        ({".env": "", "photo.png": ""}, ["list_dir", "list_dir"]),
        ({"README.md": "x"}, ["read_file", "list_dir"]),
        ({"src/": "", "README.md": "x", "setup.py": "y"}, ["read_file", "read_file", "list_dir"]),
        ({f"{n}.txt": "x" for n in range(9)}, ["read_file"] * 3),
    ],
)
def test_parallel_calls_only_what_is_there(files: dict[str, str], expected: list[str]) -> None:
    answers = play("parallel", folder(files))
    assert called(answers) == [["list_dir"], expected, []]
    assert f"{len(expected)} places" in answers[-1].text
    assert len({call.id for answer in answers for call in answer.calls}) == 1 + len(expected)
    assert len({call.arguments for call in answers[1].calls}) == len(expected)


def test_cut_ends_inside_a_string_and_goes_on_in_smaller_pieces() -> None:
    files: dict[str, str] = {}
    answers = play("cut", folder(files))
    assert called(answers) == [["write_file"], ["write_file"], ["edit_file"], []]
    assert [answer.stop_reason for answer in answers] == ["max_tokens", "tool_use", "tool_use", "end_turn"]
    with pytest.raises(json.JSONDecodeError, match="Unterminated string"):
        json.loads(answers[0].calls[0].arguments)
    assert files == {"mini-agent-demo.md": "# Written in two pieces\n\nThe second piece fits as well.\n"}


def test_long_is_long_markdown() -> None:
    (answer,) = play("long", folder({}))
    assert len(answer.pieces) > 300
    assert answer.text.startswith("# ")
    assert "```python" in answer.text


def test_empty_says_nothing_at_all() -> None:
    (answer,) = play("empty", folder({}))
    assert answer.pieces == ()
    assert answer.stop_reason == "end_turn"


def test_anything_else_names_the_words() -> None:
    (answer,) = play("What is the weather like?", folder({}))
    assert answer.reasoning
    for word in ("read FILE", "edit FILE", "write FILE", "run COMMAND", "parallel", "cut", "long", "empty"):
        assert f"`{word}`" in answer.text
    assert ask("").text == ask("  how long does it take to read a book?").text == answer.text


@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        ("read README.md.", {"path": "README.md"}),
        ("Please READ the file `a b.md`, then stop", {"path": "a b.md"}),
        ("could you read 'it.txt'?", {"path": "it.txt"}),
        ("read a.txt, b.txt", {"path": "a.txt"}),
        ("read ..", {"path": ".."}),
        ("run `ls -la`", {"command": "ls -la"}),
        ("run make\nand more words", {"command": "make"}),
        ("show me parallel calls", {"path": "."}),
    ],
)
def test_words_are_found_at_the_start_of_a_message(task: str, arguments: dict[str, str]) -> None:
    assert json.loads(ask(task).calls[0].arguments) == arguments


def test_a_failed_or_denied_call_is_said_and_ends_it() -> None:
    def denied(name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult("Denied: the user said no.", is_error=True)

    for task in ("read a", "edit a", "write a", "run a", "parallel"):
        first, last = play(task, denied)
        assert first.calls
        assert "did not work" in last.text
        assert "Denied: the user said no." in last.text
        assert last.stop_reason == "end_turn"


def test_a_call_without_a_result_ends_it_too() -> None:
    history = (user("read a"), Message("assistant", (ToolCall("1", "read_file", {"path": "a"}),)))
    assert not demo_answer(Request(history, tools=TOOLS)).calls


def test_without_tools_it_says_so_and_calls_nothing() -> None:
    answer = ask("read a.txt", tools=())
    assert not answer.calls
    assert "no tools" in answer.text
    answer = ask("run ls", tools=TOOLS[:2])
    assert not answer.calls
    assert "read_file, write_file" in answer.text


def test_a_new_message_begins_anew() -> None:
    old = (user("read a"), Message("assistant", (ToolCall("call_1", "read_file", {"path": "a"}),)))
    results = (Message("tool", (ToolResult("gone", is_error=True, call_id="call_1"),)),)
    answer = demo_answer(Request((*old, *results, user("read b")), tools=TOOLS))
    assert [call.id for call in answer.calls] == ["call_2"]


def test_max_tokens_cuts_any_answer() -> None:
    answer = ask("hello", max_tokens=10)
    assert len(answer.pieces) == answer.usage.output_tokens == 10
    assert answer.stop_reason == "max_tokens"
    whole = ask("hello")
    assert ask("hello", max_tokens=len(whole.pieces)) == whole


def test_usage_counts_pieces_and_words() -> None:
    answer = demo_answer(Request((user("hello there"),), system="be kind", tools=TOOLS))
    assert answer.usage.input_tokens == 4
    assert answer.usage.output_tokens == len(answer.pieces)
    assert answer.usage.cached_tokens is None
    assert answer.model == "demo"


WORDS = [
    "read",
    "edit",
    "write",
    "run",
    "parallel",
    "cut",
    "long",
    "empty",
    "please",
    "the",
    "file",
    "`",
    "\n",
]
anything = st.text() | st.lists(st.sampled_from([*WORDS, "a.py", "\ud83d", "'"]) | st.text()).map(" ".join)


@given(anything)
def test_no_text_raises(task: str) -> None:
    answer = ask(task)
    (answer.text + answer.reasoning + "".join(call.arguments for call in answer.calls)).encode()
    assert re.fullmatch(r"tool_use|end_turn|max_tokens", answer.stop_reason)


@given(anything, st.data())
def test_no_results_make_it_run_on(task: str, data: st.DataObject) -> None:
    def run(name: str, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(data.draw(st.text()), data.draw(st.booleans()))

    answers = play(task, run)
    assert answers[-1].calls == ()
