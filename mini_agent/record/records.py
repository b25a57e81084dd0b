"""What a journal is made of: the events as they are, and records of the session itself.

A record is a JSON object on a line of its own, with its `type` and `t` in unix seconds. A version that does not know a type
leaves the line where it is and reads on, so that later ones can add theirs.
"""

import msgspec

from mini_agent.core.events import AgentEvent
from mini_agent.core.messages import Message

FORMAT = 1
"""Raised only when an older program would misread what it finds; a new type of record is no reason."""


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    """What every record has that is no event."""

    t: float


class Header(SessionRecord, frozen=True, kw_only=True):
    """The first line. folder: the workspace. version: of the program. model, profile: what the session began with."""

    format: int = FORMAT
    id: str
    folder: str
    version: str
    model: str
    profile: str


class Resumed(Header, frozen=True, kw_only=True):
    """The session was opened again, with what this says; whatever was under way before it had ended without a word."""


class Checkpoint(SessionRecord, frozen=True, kw_only=True):
    """The whole history as it is now; for rebuilding, nothing before this line counts."""

    messages: tuple[Message, ...]


class Clear(SessionRecord, frozen=True, kw_only=True):
    """The user began anew: the history is empty."""


class Change(SessionRecord, frozen=True, kw_only=True):
    """What requests are made with from here on."""

    model: str
    mode: str
    effort: str | None


Record = AgentEvent | Header | Resumed | Checkpoint | Clear | Change
"""What is written, and what is understood when it is read."""
