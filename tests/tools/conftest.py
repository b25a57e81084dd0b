"""A workspace to try tools in, and something outside it."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mini_agent.agent.tools import Registry, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolCall, ToolResult
from mini_agent.core.permission import Preview
from mini_agent.workspace.files import Files
from mini_agent_tools.edit_file import EditFile
from mini_agent_tools.list_dir import ListDir
from mini_agent_tools.read_file import ReadFile
from mini_agent_tools.run_bash import RunBash
from mini_agent_tools.write_file import WriteFile


@dataclass
class Bench:
    """Calls tools as the loop does: arguments checked, then previewed, then run."""

    root: Path
    outside: Path
    tools: Registry
    context: ToolContext
    live: list[str] = field(default_factory=list)

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        tool, checked = self.tools.find(ToolCall("1", name, arguments))
        tool.preview(checked, self.context)
        return await tool.run(checked, self.context)

    def preview(self, name: str, **arguments: Any) -> Preview:
        tool, checked = self.tools.find(ToolCall("1", name, arguments))
        return tool.preview(checked, self.context)

    async def refusal(self, name: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            await self.call(name, **arguments)
        return str(caught.value)

    def file(self, name: str, content: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


def make_bench(folder: Path) -> Bench:
    root, outside = folder / "workspace", folder / "outside"
    root.mkdir()
    outside.mkdir()
    live: list[str] = []

    async def output(text: str) -> None:
        live.append(text)

    environment = {"PATH": os.environ["PATH"], "GREETING": "hello"}
    tools = Registry([ReadFile(), WriteFile(), EditFile(), ListDir(), RunBash(grace_s=0.2)])
    return Bench(root, outside, tools, ToolContext(Files(root), output, environment), live)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path)
