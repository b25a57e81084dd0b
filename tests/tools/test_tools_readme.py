"""The example in tools/README.md works as it stands there."""

import re
import tomllib
import types
from pathlib import Path

from mini_agent.agent.tools import ENTRY_POINTS, Registry
from mini_agent.core.messages import ToolCall

README = Path(__file__).parents[2] / "tools" / "README.md"


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(found) == 1
    return found[0]


async def test_the_example_is_a_tool(bench) -> None:
    points = tomllib.loads(block("toml"))["project"]["entry-points"][ENTRY_POINTS]
    ((name, place),) = points.items()
    module_name, _, class_name = place.partition(":")
    assert f"`{module_name}.py`:" in README.read_text("utf-8")
    module = types.ModuleType(module_name)
    exec(compile(block("python"), f"{module_name}.py", "exec"), module.__dict__)
    tools = Registry([vars(module)[class_name]()])
    assert [spec.name for spec in tools.specs] == [name]

    bench.file("words.txt", b"one three five\n")
    tool, arguments = tools.find(ToolCall("1", name, {"path": "words.txt", "at_least": "4"}))
    assert tool.preview(arguments, bench.context).targets == (str((bench.root / "words.txt").resolve()),)
    result = await tool.run(arguments, bench.context)
    assert (result.content, result.detail) == ("2 words", "three five")
    assert bench.live == ["3 words read\n"]


def test_every_builtin_is_named() -> None:
    project = tomllib.loads((README.parents[1] / "pyproject.toml").read_text("utf-8"))
    for name in project["project"]["entry-points"][ENTRY_POINTS]:
        assert f"- `{name}`" in README.read_text("utf-8") or name == "list_dir"
