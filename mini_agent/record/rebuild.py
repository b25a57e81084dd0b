"""From the records of a journal back to the conversation, as the agent would have it had it lived on.

What the agent does with its own history while it runs is told by its events; here the same is done again. Where it ended
without a word (`kill -9`, a power cut), the conversation is left as a provider takes it: what was said stays, and every
call has a result that says what is known of it.
"""

from collections.abc import Callable, Iterable

import msgspec

from mini_agent.core.events import (
    AttemptEnded,
    ChannelToken,
    Compacted,
    Completed,
    Failed,
    Retrying,
    StreamStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnReason,
    TurnStarted,
    UserMessage,
)
from mini_agent.core.history import CANCELLED, Conversation
from mini_agent.core.messages import Image, Message, ToolCall, ToolResult
from mini_agent.record.records import Checkpoint, Clear, Record, Resumed

STARTED = (
    "The program ended while this call was running: it was started, and nothing is known of its end. It may have acted: "
    "check before you do it again."
)
NOT_RUN = "Not run: the program ended before this call was started. It may be made again."


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation stands.

    turns: how many there were; one that went on from where the last had failed is no other. prompt: of the last turn.
    text: of the last answer that had one. has_ended: whether the last turn has its end, and reason: which. is_waiting:
    whether an answer is missing or broke off. is_interrupted: whether the last message is what such a one had said.
    """

    turns: int = 0
    prompt: str = ""
    text: str = ""
    has_ended: bool = True
    reason: TurnReason | None = None
    is_waiting: bool = False
    is_interrupted: bool = False


def rebuild(records: Iterable[Record]) -> tuple[tuple[Message, ...], State]:
    """The history, repaired, and where it stands. Any sequence of records gives one."""
    rebuilder = _Rebuilder()
    for record in records:
        rebuilder.take(record)
    return rebuilder.end()


class _Rebuilder:
    def __init__(self) -> None:
        self._conversation = Conversation()
        self._partial: list[str] = []
        self._started: set[str] = set()
        self._turns = 0
        self._prompt = ""
        self._text = ""
        self._has_ended = True
        self._reason: TurnReason | None = None

    def take(self, record: Record) -> None:
        match record:
            case TurnStarted():
                self._begin_turn(record.prompt, record.images)
            case UserMessage():
                self._conversation.add_user(record.text)
            case StreamStarted() | Retrying() | Failed() | Compacted():
                self._partial.clear()
            case AttemptEnded(outcome="completed" | "failed"):
                self._partial.clear()  # it became an answer, or was given up; what a cancel leaves of one is kept
            case ChannelToken(channel="text"):
                self._partial.append(record.text)
            case Completed():
                self._partial.clear()
                self._started.clear()  # an id may be used again
                self._conversation.add_response(record.response)
                self._said(record.response.text)
            case ToolStarted():
                self._started.add(record.call_id)
            case ToolFinished():
                self._conversation.add_result(
                    ToolResult(record.content, record.is_error, call_id=record.call_id)
                )
            case TurnFinished():
                self._settle(lambda _: CANCELLED)
                self._has_ended, self._reason = True, record.reason
            case Checkpoint():
                self._partial.clear()
                self._conversation.replace(record.messages)
            case Clear():
                self._partial.clear()
                self._conversation.replace(())
                self._text = ""
            case Resumed():
                self._broken_off()
            case _:
                pass

    def end(self) -> tuple[tuple[Message, ...], State]:
        self._broken_off()
        messages = self._conversation.sendable()
        return messages, State(
            turns=self._turns,
            prompt=self._prompt,
            text=self._text,
            has_ended=self._has_ended,
            reason=self._reason,
            is_waiting=self._conversation.is_waiting,
            is_interrupted=self._conversation.is_interrupted,
        )

    def _begin_turn(self, prompt: str, images: tuple[Image, ...]) -> None:
        self._broken_off()
        self._has_ended, self._reason = False, None
        if prompt:  # without one, a turn goes on with the history as it is
            self._turns += 1
            self._prompt = prompt
            self._conversation.add_user(prompt, images)

    def _broken_off(self) -> None:
        """Here the program ended, or may have; where the last turn had its end, there is nothing left to do."""
        self._settle(lambda call: STARTED if call.id in self._started else NOT_RUN)

    def _settle(self, result: Callable[[ToolCall], str]) -> None:
        """What was said stays, every call of the last answer has its result."""
        text = "".join(self._partial)
        self._partial.clear()
        self._conversation.add_partial(text)
        self._said(text)
        for call in self._conversation.unanswered():
            self._conversation.add_result(ToolResult(result(call), is_error=True, call_id=call.id))

    def _said(self, text: str) -> None:
        if text.strip():
            self._text = text
