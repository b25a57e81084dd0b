"""The question before a call that needs the user's word: what would be done, then one key."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from mini_agent.core.permission import ApprovalRequest, Decision
from mini_agent.ui.diff import diff_rows
from mini_agent.ui.text import cells, fit, one_line, paint, visible, wrap

DIFF_ROWS = 400
"""A longer change is shown by its beginning, and it is said how much is left out."""

_QUESTION = "Allow? [y]es / [n]o "
_ANSWERS = {"y": "yes", "Y": "yes", "n": "no", "N": "no", "escape": "no"}


class Stage(Protocol):
    """Where a question is shown; a `View` is one."""

    def introduce(self, call_id: str, rows: Sequence[str], question: str) -> None: ...

    def answered(self, answer: str) -> None: ...


class Keyboard(Protocol):
    """Where its answer comes from; `Keys` is one."""

    def ask(self, answers: Mapping[str, str]) -> Awaitable[str]: ...


async def ask(request: ApprovalRequest, stage: Stage, keys: Keyboard, width: int) -> Decision:
    """Asks, and returns the answer. A cancel takes the question away."""
    answer = ""
    stage.introduce(request.call_id, question_rows(request, width), _QUESTION)
    try:
        answer = await keys.ask(_ANSWERS)
    finally:
        stage.answered(answer)
    return Decision(answer == "yes")


def question_rows(request: ApprovalRequest, width: int) -> list[str]:
    """What would be done, on rows of their own, with nothing in it that could hide or pretend."""
    preview = request.preview
    title = one_line(request.name)
    head = fit(f"● {title} ", width)
    summary = preview.summary or preview.subject or title
    verb, _, rest = summary.partition(" ")
    if rest and title.startswith(f"{verb}_"):
        summary = rest  # "edit_file edit notes.md" says it twice
    rows = wrap(visible(summary), max(1, width - cells(head)))
    out = [paint(head, "cyan") + rows[0], *("  " + row for row in rows[1:])]
    if preview.diff:
        out += ["  " + row for row in diff_rows(preview.diff, max(1, width - 2), DIFF_ROWS)]
    elif preview.subject not in preview.summary:
        for line in preview.subject.split("\n"):
            out += ["  " + paint(row, "bold") for row in wrap(visible(line), max(1, width - 2))]
    why = wrap(one_line(request.reason), max(1, width - 2))
    return [*out, *("  " + paint(row, "dim") for row in why if row)]
