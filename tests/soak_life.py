"""One life of a soak's session: everything the program would build, from the journal to the socket."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from soak_provider import WINDOW
from soak_tools import Look, Note, Ran, Shell

from mini_agent.agent.asking import TurnSettings
from mini_agent.agent.handover import HandOver
from mini_agent.agent.loop import Agent
from mini_agent.agent.tools import Registry, ToolContext
from mini_agent.core.history import Conversation
from mini_agent.core.messages import Image, Message, Text
from mini_agent.core.permission import Approve
from mini_agent.core.profile import Deadlines, Effort, ModelFacts, Profile
from mini_agent.models.http import HttpModel
from mini_agent.models.policy import DEFAULT
from mini_agent.models.retrying import RetryingModel
from mini_agent.models.traced import TracedModel
from mini_agent.record import sessions
from mini_agent.record.journal import Journal
from mini_agent.record.records import Checkpoint, Header, Resumed
from mini_agent.session import Session
from mini_agent.wire import profiles
from mini_agent.wire.transport import Transport
from mini_agent.workspace.files import Files
from mini_agent.workspace.spill import Spill

FAMILIES = {"chat": "generic", "responses": "openai", "messages": "anthropic", "deepseek": "deepseek"}
"""What is asked, and the profile it is asked with."""

KNOWN, UNKNOWN = "soak", "soaked"
"""Models; of the second nobody knows the window."""

EFFORTS: tuple[Effort | None, ...] = (None, None, "off", "low", "high")

DEADLINES = Deadlines(first_event_s=2, idle_s=1.5, stall_s=2, total_s=90, whole_answer_s=2)
PICTURED = (
    Message("user", (Text("look at this"), Image("image/png", b"\x89PNG\r\n\x1a\n" + b"x" * 300))),
    Message("assistant", (Text("a picture"),)),
)


def profile(family: str, base_url: str) -> Profile:
    """The vendor's profile for a family, at another address, in more of a hurry, with fields that can be refused."""
    own = profiles.shipped().get(FAMILIES[family], Profile(name="generic"))
    return msgspec.structs.replace(
        profiles.at(own, base_url),
        deadlines=DEADLINES,
        extra_body={"temperature": 0.5, "top_p": 0.9},
        models={KNOWN: ModelFacts(window=WINDOW)},
    )


@dataclass
class Life:
    """A session from its opening to its close."""

    session: Session
    conversation: Conversation
    journal: Journal

    def change(self, rng: random.Random) -> None:
        """What a user may change between two turns."""
        self.session.use(
            model=rng.choice((None, KNOWN, UNKNOWN)),
            mode=rng.choice((None, "ask", "auto")),
            effort=rng.choice(EFFORTS),
        )


@dataclass
class Maker:
    """Makes the lives of one conversation.

    path: of the journal. ran: is told of each tool that runs. queued: as the agent's. new_key: gives another key than all
    before.
    """

    path: Path
    profile: Profile
    rng: random.Random
    approve: Approve
    ran: Ran
    queued: Callable[[], Sequence[str]]
    new_key: Callable[[], str]

    def begin(self) -> Life:
        key = self.new_key()
        journal = Journal(self.path, Header(**self._about()), secrets=[key], later=_later)
        messages = PICTURED if self.rng.random() < 0.7 else ()
        if messages:
            journal.write(Checkpoint(t=0, messages=messages))
        return self._open(journal, Conversation(messages), key)

    def resume(self) -> Life:
        key = self.new_key()
        journal = Journal.resume(self.path, Resumed(**self._about()), secrets=[key], later=_later)
        loaded = sessions.load(self.path)
        conversation = Conversation(loaded.messages, is_interrupted=loaded.state.is_interrupted)
        return self._open(journal, conversation, key)

    def _about(self) -> dict[str, Any]:
        about = dict.fromkeys(("folder", "version", "model", "profile"), "soak")
        return {"t": 0, "id": self.path.stem, **about}

    def _open(self, journal: Journal, conversation: Conversation, key: str) -> Life:
        rng = self.rng
        handover = HandOver()
        http = HttpModel(self.profile, key, Transport(connect_s=10), user_agent="soak")
        traced = TracedModel(
            RetryingModel(http, DEFAULT, rng=rng),
            handover.put_now,
            total_s=self.profile.deadlines.total_s,
        )
        spill = Spill(self.path.parent / "spill", journal.id)
        agent = Agent(
            traced,
            Registry([Look(self.ran), Note(self.ran), Shell()]),
            conversation,
            self.approve,
            context=ToolContext(Files(self.path.parent, readable=spill.folder), spill=spill),
            settings=TurnSettings(
                model=KNOWN,
                system="You are soaked.",
                max_steps=9,
                max_tokens=rng.choice((None, 4_000)),
                effort=rng.choice(EFFORTS),
                stream=rng.random() < 0.8,
                window=WINDOW,
            ),
            handover=handover,
            queued=self.queued,
            new_key=lambda: rng.random() < 0.5 and http.use_key(self.new_key()),
        )
        session = Session(agent, traced, conversation, self.profile, _no_models, journal=journal)
        return Life(session, conversation, journal)


async def _no_models() -> Sequence[str]:
    return ()


def _later(delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(delay_s, callback)
