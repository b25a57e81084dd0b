"""What may be done, as values. The judgement is `agent.permissions`, the question is the front end's."""

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

Mode = Literal["ask", "auto"]
"""How much is done without asking. `edit` and `plan` come with the tools' rules."""

Effect = Literal["reads", "writes", "runs", "fetches"]
"""What a tool does to the world at worst."""


class Preview(msgspec.Struct, frozen=True):
    """What a call would do, made without doing it.

    targets: real paths it would touch. subject: what a rule matches (the command, the path). summary: one line for the
    question. diff: a unified diff of the change, "" where there is none.
    """

    targets: tuple[str, ...] = ()
    subject: str = ""
    summary: str = ""
    diff: str = ""


class ApprovalRequest(msgspec.Struct, frozen=True):
    """A question to the user. reason: why it is asked, one line."""

    call_id: str
    name: str
    effect: Effect
    preview: Preview
    reason: str


class Decision(msgspec.Struct, frozen=True):
    """The answer. why: what decided where nobody was asked (then it is told to the model and the screen)."""

    allowed: bool
    why: str | None = None


Approve = Callable[[ApprovalRequest], Awaitable[Decision]]
"""Asks the user about one call; may be cancelled with the turn."""
