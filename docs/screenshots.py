"""Makes the README's pictures from real runs: `.venv/bin/python docs/screenshots.py` writes docs/*.svg anew.

Each scene starts the program in a terminal (tests/terminal, so on POSIX only), plays a user, and draws what the screen
shows at one moment. The demo model answers, so nothing but the times shown differs from one run to the next.
"""

import itertools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests" / "terminal"))

from screen import Cell  # noqa: E402  found on the path set above
from terminal import Terminal  # noqa: E402

PROGRAM = Path(sys.executable).with_name("mini-agent")
COLUMNS, ROWS = 80, 30

CELL_W, CELL_H, FONT_PX = 8.4, 18, 14
PADDING = 14
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
BACKGROUND, FOREGROUND = "#16181d", "#d7dae0"
COLOURS = {
    "red": "#ef6b73",
    "green": "#8ccf7e",
    "brown": "#e5c76b",  # as pyte calls the terminal's yellow
    "blue": "#67b0e8",
    "magenta": "#c47fd5",
    "cyan": "#6cbfbf",
}

NOTES = """\
# Shopping

- tea
- bread
"""


def streaming(terminal: Terminal) -> None:
    """In the middle of the second answer, while the model still thinks."""
    terminal.enter("read notes.md")
    terminal.wait_for("first token")
    terminal.wait_for_prompt()
    terminal.enter("and what can you do?")
    terminal.wait_for(lambda shown: any("I think as" in line for line in shown.lines))


def retry(terminal: Terminal) -> None:
    """In the wait before the second retry, after its countdown has moved on."""
    terminal.enter("read notes.md")
    terminal.wait_for("retry 2/4 in 2 s")


def approval(terminal: Terminal) -> None:
    """A change to a file, and the question whether to make it."""
    terminal.enter("edit notes.md")
    terminal.wait_for("Allow?")


def receipt(terminal: Terminal) -> None:
    """The same change, allowed and done, and the receipt."""
    approval(terminal)
    terminal.rest(0.6)
    terminal.send("y")
    terminal.wait_for("first token")
    terminal.wait_for_prompt()


SCENES: dict[str, tuple[Callable[[Terminal], None], dict[str, str]]] = {
    "streaming": (streaming, {}),
    "retry": (retry, {"DEMO_FAIL_RATE": "0.5", "DEMO_SEED": "12", "MINI_AGENT_RETRY_BASE_S": "1.5"}),
    "approval": (approval, {}),
    "receipt": (receipt, {}),
}


def main() -> None:
    for name, (play, env) in SCENES.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "notes.md").write_text(NOTES)
            command = [str(PROGRAM), "--model", "demo"]
            with Terminal(
                command, cwd=Path(folder), env=_clean(folder) | env, rows=ROWS, columns=COLUMNS
            ) as terminal:
                terminal.wait_for_prompt()
                play(terminal)
                cursor = terminal.screen.cursor if terminal.cursor_visible else None
                picture = svg(
                    terminal.screen.rows(), (cursor.x, cursor.y) if cursor else None, play.__doc__ or name
                )
        (DOCS / f"{name}.svg").write_text(picture, encoding="utf-8")


def _clean(folder: str) -> dict[str, str | None]:
    """What is set here counts for nothing."""
    ours = (name for name in os.environ if name.startswith(("DEMO_", "MINI_AGENT_")))
    return {**dict.fromkeys(ours), "MINI_AGENT_HOME": f"{folder}/.home"}


def svg(rows: Sequence[Sequence[Cell]], cursor: tuple[int, int] | None, title: str) -> str:
    """The rows down to the last one with anything in it, as a picture that needs nothing from elsewhere."""
    used = max([y for y, row in enumerate(rows) if "".join(cell.data for cell in row).strip()], default=0)
    height = (max(used, cursor[1] if cursor else 0) + 1) * CELL_H + 2 * PADDING
    width = round(COLUMNS * CELL_W) + 2 * PADDING
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="{FONTS}" font-size="{FONT_PX}" fill="{FOREGROUND}">',
        *(run for y, row in enumerate(rows[: used + 1]) for run in _runs(row, y)),
        "</g>",
    ]
    if cursor:
        x, y = _at(*cursor)
        parts.append(
            f'<rect x="{x}" y="{y - 13}" width="{CELL_W}" height="{CELL_H - 2}" fill="{FOREGROUND}" opacity="0.7"/>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _runs(row: Sequence[Cell], y: int) -> Iterator[str]:
    """One text element for each run of cells in the same style; its length is given, so that every font fits the grid."""
    column = 0
    for style, cells in itertools.groupby(row, key=_style):
        run = "".join(cell.data for cell in cells)
        text, begins = run.strip(" "), column + len(run) - len(run.lstrip(" "))
        column += len(run)
        if text:
            x, baseline = _at(begins, y)
            length = f'textLength="{round(len(text) * CELL_W, 1)}" lengthAdjust="spacingAndGlyphs"'
            # Spaces that may not collapse.
            yield f'<text x="{x}" y="{baseline}" {length}{style}>{escape(text).replace(" ", chr(0xA0))}</text>'


def _at(column: int, row: int) -> tuple[float, float]:
    """Where a cell's text begins: its left edge and its baseline."""
    return round(PADDING + column * CELL_W, 1), PADDING + row * CELL_H + 13


def _style(cell: Cell) -> str:
    colour = COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 and cell.fg != "default" else "")
    fill = f' fill="{colour}"' if colour else ""
    return fill + ' font-weight="bold"' * cell.bold + ' opacity="0.6"' * cell.dim


if __name__ == "__main__":
    main()
