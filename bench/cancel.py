"""What Ctrl+C costs: from the key to the prompt, in the real program in a terminal, in every state a turn can be in.

    python bench/cancel.py

The time begins before the key is written to the pseudo-terminal and ends when the emulated screen shows the prompt with its
cursor; the next message of the same process follows. The states are those of the tests (tests/terminal/interruptions.py).
Esc is the same but for 50 ms, in which it could still be the beginning of another key.
"""

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "terminal")]

from interruptions import OPENING, SETTINGS, Stage, open_stage  # noqa: E402  found by the line above
from programs import CONSOLE_SCRIPT  # noqa: E402
from terminal import CTRL_C, ESC, Terminal  # noqa: E402
from unreachable import FullQueue, NoHandshake, connect, connecting_to  # noqa: E402

RUNS = 10
DUE_MS = 100


class Starting:
    """Starts the program in a folder, with a home of its own, as the tests' fixture does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment: dict[str, str | None] = {
            name: None
            for name in os.environ
            if name.startswith(("MINI_AGENT_", "DEMO_")) or name.lower().endswith(("_api_key", "_proxy"))
        }
        self._environment["MINI_AGENT_HOME"] = str(folder / "home")

    def __call__(
        self,
        *arguments: str,
        lab: object = None,
        env: Mapping[str, str] | None = None,
        command: list[str] | None = None,
        rows: int = 24,
    ) -> Terminal:
        address = getattr(lab, "base_url", None)
        endpoint = {"MINI_AGENT_BASE_URL": address, "MINI_AGENT_MODEL": "m"} if address else {}
        return Terminal(
            [*(command or CONSOLE_SCRIPT), *arguments],
            cwd=self._folder,
            env={**self._environment, **endpoint, **(env or {})},
            rows=rows,
        )


def measured(stage: Stage, key: str, holding: str = "") -> float:
    """Milliseconds from the key to the prompt."""
    began = time.perf_counter()
    stage.terminal.send(key)
    stage.terminal.wait_for_prompt(holding)
    return (time.perf_counter() - began) * 1000


@contextlib.contextmanager
def workplace() -> Iterator[tuple[Starting, Path]]:
    """What starts the program, and the folder it works in."""
    with tempfile.TemporaryDirectory() as name:
        yield Starting(Path(name)), Path(name)


def rounds() -> Iterator[tuple[str, list[float]]]:
    """Each state's name and its times."""
    for setting in (OPENING, *SETTINGS):
        with workplace() as (start, folder), open_stage(setting, start, folder) as stage:
            for state in setting.states:
                for key in (CTRL_C, ESC) if state.name == "token" else (CTRL_C,):
                    times = []
                    for _ in range(RUNS):
                        state.enter(stage)
                        times.append(measured(stage, key, state.name if setting is OPENING else ""))
                    yield f"{state.name}, by Esc" if key == ESC else state.name, times
            stage.terminal.close()
    for name, nowhere in (("connecting", FullQueue()), ("TLS handshake", NoHandshake())):
        with workplace() as (start, folder), connecting_to(nowhere, start, folder) as stage:
            times = []
            for _ in range(RUNS):
                connect(stage, nowhere)
                times.append(measured(stage, CTRL_C))
            yield name, times
            stage.terminal.close()


def main() -> None:
    print(f"Ctrl+C to prompt, {RUNS} runs each, in ms (due: under {DUE_MS})\n")
    print(f"{'state':16} {'median':>8} {'max':>8}")
    worst = 0.0
    for name, times in rounds():
        worst = max(worst, *times)
        print(f"{name:16} {statistics.median(times):8.1f} {max(times):8.1f}", flush=True)
    print(f"\nworst of all: {worst:.1f} ms, {worst / DUE_MS:.2f} of what is due")


if __name__ == "__main__":
    main()
