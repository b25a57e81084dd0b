"""Running the real program as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

CONSOLE_SCRIPT = [str(Path(sys.executable).parent / ("mini-agent.exe" if os.name == "nt" else "mini-agent"))]
MODULE = [sys.executable, "-m", "mini_agent"]
QUICK = {
    "MINI_AGENT_MODEL": "demo",
    "DEMO_DELAY_MS": "0",
    "DEMO_SEED": "7",
    "MINI_AGENT_RETRY_BASE_S": "0.01",
}


def run(*arguments, cwd, stdin="", env=None, program=None, **options):
    """Runs `mini-agent` to its end; an empty string is an empty standard input."""
    return subprocess.run(
        [*(program or CONSOLE_SCRIPT), *arguments],
        cwd=cwd,
        input=stdin,
        env={**os.environ, **QUICK, **(env or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
        **options,
    )
