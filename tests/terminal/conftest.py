"""A program in a terminal of its own for each test."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from programs import CONSOLE_SCRIPT
from terminal import Terminal

from mini_agent.lab.server import LabThread

DEFAULTS = {"DEMO_DELAY_MS": "0", "DEMO_SEED": "7", "MINI_AGENT_RETRY_BASE_S": "0.01"}

Start = Callable[..., Terminal]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The workspace the program is started in."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    return workspace


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts the program; where `lab` is given it is the endpoint. At the end of the test it is gone."""
    if sys.platform == "win32":
        pytest.skip("there is no pseudo-terminal here")
    terminals: list[Terminal] = []

    def run(
        *arguments: str,
        lab: LabThread | None = None,
        env: dict[str, str | None] | None = None,
        command: list[str] | None = None,
        rows: int = 24,
        columns: int = 80,
    ) -> Terminal:
        endpoint = {"MINI_AGENT_BASE_URL": lab.base_url, "MINI_AGENT_MODEL": "m"} if lab else {}
        terminal = Terminal(
            [*(command or CONSOLE_SCRIPT), *arguments],
            cwd=folder,
            env={**DEFAULTS, **endpoint, **(env or {})},
            rows=rows,
            columns=columns,
        )
        terminals.append(terminal)
        return terminal

    yield run
    for terminal in terminals:
        terminal.close()
