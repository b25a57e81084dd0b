"""What the demo model says: a pure function from a request to an answer, also played by the lab server (product D1).

What it does is derived from the history alone: the first words of the last user message choose a script, and the rounds
of tool calls since then are how far that script has come. So it can be asked again at any time, remembers nothing, and
can't run on: each script has an end, and a call that failed or was denied ends it early.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from mini_agent.core.answers import Answer, Piece, ReasoningPiece, call_pieces, reasoning_pieces, text_pieces
from mini_agent.core.messages import Message, Request, StopReason, ToolCall, ToolResult, Usage
from mini_agent.core.sample_edits import comment, edit_of, file_lines
from mini_agent.core.surrogates import join_surrogates

Round = tuple[tuple[ToolCall, ToolResult | None], ...]
"""The calls of one response and their results."""


class Step(msgspec.Struct, frozen=True):
    """One answer of a script, not yet in pieces. cut: the last call's arguments end half-way, at max_tokens."""

    say: str = ""
    think: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    cut: bool = False


Script = Callable[[str, list[Round]], Step]
"""What to do about a target (a file, a command, or "") after these rounds, all of which went well."""


def demo_answer(request: Request) -> Answer:
    """The demo model's answer to `request`."""
    task, rounds = _task(request.messages)
    offered = {tool.name for tool in request.tools}
    step = _step(task, rounds)
    missing = sorted({name for name, _ in step.calls} - offered)
    if missing:
        step = Step(
            f"I would need `{missing[0]}` for this, but this request offers me "
            + (f"only: {', '.join(sorted(offered))}." if offered else "no tools.")
        )
    return _answer(step, request)


def _task(messages: tuple[Message, ...]) -> tuple[str, list[Round]]:
    """The last user message, and what was called since."""
    task = ""
    rounds: list[Round] = []
    results: dict[str, ToolResult] = {}
    for message in reversed(messages):
        if message.role == "user":
            task = message.text
            break
        results.update((result.call_id, result) for result in message.tool_results)
        if message.tool_calls:
            rounds.insert(0, tuple((call, results.get(call.id)) for call in message.tool_calls))
    return task, rounds


def _step(task: str, rounds: list[Round]) -> Step:
    for pattern, script in _SCRIPTS:
        if found := pattern.match(task):
            expected = 1 if script is _cut else 0  # the call that was cut on purpose is answered by an error
            return _failure(rounds[expected:]) or script(_target(found), rounds)
    return _failure(rounds) or Step(_WELCOME, think=_WELCOME_THOUGHT)


def _target(found: re.Match[str]) -> str:
    """The file or command as the user meant it: without quotes around it, a file without a sentence's end behind it."""
    words = found["target"] or ""
    if len(words) > 2 and words[0] == words[-1] and words[0] in "\"'`":
        return words[1:-1]
    if "file" not in found.groupdict():
        return words.rstrip()
    words = words.rstrip(",;:!?") or words
    return re.sub(r"(?<=\w)\.$", "", words)


def _failure(rounds: list[Round]) -> Step | None:
    """The end of a script whose last call failed or was denied: says so and stops."""
    for called, result in rounds[-1] if rounds else ():
        if result is None or result.is_error:
            said = result.content if result is not None else "there is no result"
            quote = "\n".join(f"> {line}" for line in said.strip()[:500].splitlines()[:6])
            return Step(f"`{called.name}` did not work, so I stop here. It said:\n\n{quote}")
    return None


def _answer(step: Step, request: Request) -> Answer:
    """`step` in pieces, cut off where the request's own max_tokens says so: one piece counts as one token."""
    used = sum(len(message.tool_calls) for message in request.messages)
    pieces: list[Piece] = [
        *reasoning_pieces(join_surrogates(step.think)),
        *text_pieces(join_surrogates(step.say)),
    ]
    for index, (name, arguments) in enumerate(step.calls):
        written = join_surrogates(json.dumps(arguments, ensure_ascii=False))
        pieces += call_pieces(index, f"call_{used + index + 1}", name, written[:-8] if step.cut else written)
    stop: StopReason = "max_tokens" if step.cut else "tool_use" if step.calls else "end_turn"
    if request.max_tokens is not None and len(pieces) > request.max_tokens:
        pieces, stop = pieces[: request.max_tokens], "max_tokens"
    usage = Usage(
        input_tokens=_words(request),
        output_tokens=len(pieces),
        reasoning_tokens=sum(isinstance(piece, ReasoningPiece) for piece in pieces),
    )
    return Answer(tuple(pieces), stop, usage)


def _words(request: Request) -> int:
    """A rough size of the question. The demo model has no tokens; what it counts are words."""
    said = [request.system]
    for message in request.messages:
        said.append(message.text)
        said += (f"{called.name} {called.arguments}" for called in message.tool_calls)
        said += (result.content for result in message.tool_results)
    return sum(len(part.split()) for part in said)


def _read(path: str, rounds: list[Round]) -> Step:
    if not rounds:
        return Step(f"I'll read `{path}`.", "A file to read. One call does it.", (_reading(path),))
    lines = file_lines(_result(rounds[0]))
    if not lines:
        return Step(f"`{path}` is empty.")
    count = f"**{len(lines)} line{'s' * (len(lines) != 1)}**"
    return Step(f"I was shown {count} of `{path}`. It begins like this:\n\n{_fenced(lines[:5])}\n")


def _edit(path: str, rounds: list[Round]) -> Step:
    if not rounds:
        thought = "An edit has to quote the file exactly, so I read it first."
        return Step(f"I'll read `{path}` before I change it.", thought, (_reading(path),))
    if len(rounds) > 1:
        return Step(f"Done: `{path}` is changed in one place. Nothing else in it was touched.")
    change = edit_of(path, file_lines(_result(rounds[0])))
    if change is None:
        return Step(f"`{path}` has no place where I could safely add a line, so I leave it as it is.")
    old, new = change
    return Step(
        "Now the edit: one line, and the rest stays.",
        "The text to replace must be in the file exactly once.",
        (("edit_file", {"path": path, "old": old, "new": new}),),
    )


def _write(path: str, rounds: list[Round]) -> Step:
    if rounds:
        return Step(f"Done: `{path}` is written. `edit {path}` changes it.")
    content = f"{comment(path, 'Written by the demo model of mini-agent.')}\n"
    return Step(
        f"I'll write `{path}`.",
        "A small file will do.",
        (("write_file", {"path": path, "content": content}),),
    )


def _run(command: str, rounds: list[Round]) -> Step:
    if not rounds:
        return Step(
            "I'll run that.", "A command to run, as it stands.", (("run_bash", {"command": command}),)
        )
    lines = _result(rounds[0]).splitlines()
    shown = lines if len(lines) <= 8 else [*lines[:4], "...", *lines[-4:]]
    return Step(f"That ran. What came out:\n\n{_fenced(shown)}\n")


def _parallel(_: str, rounds: list[Round]) -> Step:
    """Looks around first, because only what is there can be read; then asks for several things at once."""
    if not rounds:
        thought = "First what is here, then several of them at once."
        return Step("I'll look around.", thought, (("list_dir", {"path": "."}),))
    if len(rounds) > 1:
        names = ", ".join(f"`{called.arguments.get('path', '.')}`" for called, _ in rounds[1])
        return Step(f"Looked at **{len(rounds[1])} places in one response**: {names}.")
    calls = [
        ("list_dir", {"path": name.rstrip("/")}) if name.endswith("/") else _reading(name)
        for name in _readable(_result(rounds[0]))[:3]
    ]
    while len(calls) < 2:  # a folder with next to nothing in it
        calls.append(("list_dir", {"path": "."} if calls else {}))
    return Step("Now several calls at once; they only read.", calls=tuple(calls))


def _cut(_: str, rounds: list[Round]) -> Step:
    """A call cut at max_tokens, then the same in smaller pieces, as the error result asks."""
    path = "mini-agent-demo.md"
    first, second = "# Written in two pieces\n", "The second piece fits as well.\n"
    match len(rounds):
        case 0:
            return Step(
                "I'll write everything at once, and it will be too much for one answer.",
                "This call is cut on purpose, in the middle of a string.",
                (("write_file", {"path": path, "content": first + second * 12}),),
                cut=True,
            )
        case 1:
            return Step(
                "My output was cut in the middle of that call, so it was not run. Now in smaller pieces:",
                calls=(("write_file", {"path": path, "content": first}),),
            )
        case 2:
            arguments = {"path": path, "old": first.strip(), "new": f"{first}\n{second.strip()}"}
            return Step("And the second piece.", calls=(("edit_file", arguments),))
        case _:
            return Step(f"Done: two small calls wrote `{path}`; the one that was cut changed nothing.")


def _long(_: str, rounds: list[Round]) -> Step:
    del rounds
    parts = [_LONG_PART.format(number=number, square=number * number) for number in range(1, 6)]
    return Step("# A long answer\n\n" + "\n".join(parts), "Long, with every kind of block in it.")


def _empty(_: str, rounds: list[Round]) -> Step:
    del rounds
    return Step()


def _reading(path: str) -> tuple[str, dict[str, Any]]:
    return "read_file", {"path": path}


def _result(done: Round) -> str:
    result = done[0][1]
    return result.content if result is not None else ""


def _readable(listing: str) -> list[str]:
    """What of a list_dir result is worth reading: text files, then folders.

    Not hidden ones, which may hold secrets, nor names that could only be shown escaped.
    """
    names = [line for line in listing.split("\n") if re.fullmatch(r"[^.\\][^\\]*", line)]
    files = [name for name in names if name.lower().endswith(_TEXT_FILES)]
    return files + [name for name in names if name.endswith("/")]


def _fenced(lines: list[str]) -> str:
    """`lines` as a code block whose fence none of them can close."""
    body = "\n".join(line[:200] for line in lines)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", body))])
    return f"{fence}\n{body}\n{fence}"


_LEAD = (
    r"\s*(?:(?:please|now|then|can|could|would|you|show|give|me|us|do|make|call|calls|a|an|the|one|some)\s+)*"
)
_FILE = r"\s+(?:the\s+)?(?:file\s+)?(?P<file>(?P<target>\"[^\"\n]+\"|'[^'\n]+'|`[^`\n]+`|\S+))"


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(_LEAD + words, re.IGNORECASE)


_SCRIPTS: tuple[tuple[re.Pattern[str], Script], ...] = (
    (_pattern(r"read" + _FILE), _read),
    (_pattern(r"edit" + _FILE), _edit),
    (_pattern(r"write" + _FILE), _write),
    (_pattern(r"run[ \t]+(?P<target>\S[^\n]*)"), _run),
    (_pattern(r"parallel\b(?P<target>)"), _parallel),
    (_pattern(r"cut\b(?P<target>)"), _cut),
    (_pattern(r"long\b(?P<target>)"), _long),
    (_pattern(r"empty\b(?P<target>)"), _empty),
)

_TEXT_FILES = (
    ".md",
    ".txt",
    ".py",
    ".toml",
    ".rs",
    ".go",
    ".js",
    ".ts",
    ".c",
    ".java",
    ".html",
    ".css",
    ".sh",
)

_WELCOME_THOUGHT = (
    "Nobody asked me for one of the things that I can show, so I say what they are. "
    "I am a demo: I think as much as this text does."
)

_WELCOME = """\
I am the **demo model**: no key, no network, and no idea what you mean. I only know these words, at the start of a message:

| word | what happens |
| --- | --- |
| `read FILE` | reads a file of this folder |
| `edit FILE` | reads it, then adds a line to it |
| `write FILE` | writes a small file |
| `run COMMAND` | runs a command |
| `parallel` | several calls in one response |
| `cut` | a call cut at max_tokens, and the way on |
| `long` | a long answer |
| `empty` | an answer without a word |

What is shown, asked and done is real; *only the thinking is not*. To talk to a real model, set a key, \
for example `DEEPSEEK_API_KEY`.
"""

_LONG_PART = """\
## Part {number}

This is paragraph **{number}** of a text that says nothing, at some length. It has *emphasis*, `code`, a \
[link](https://example.com/{number}) and enough words to be broken over several lines of most terminals.

1. First, a number: {number}.
2. Then its square: {square}.
   - with a point below it

```python
def part() -> int:
    return {number} * {number}  # {square}
```

| n | n squared |
| ---: | ---: |
| {number} | {square} |

> A quotation, to end part {number}.
"""
