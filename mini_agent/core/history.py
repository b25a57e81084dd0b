"""The history of a conversation and the iron rule (product A1).

Every tool call has exactly one result, directly after it, before any other message. `repair` makes any list of messages
obey; it runs before every request and on load, so that no crash, cancel or edit can leave a history no provider takes.
"""

from collections.abc import Iterable, Sequence

import msgspec

from mini_agent.core.messages import AnyBlock, Image, Message, Reasoning, Response, Text, ToolCall, ToolResult
from mini_agent.core.surrogates import join_surrogates

INTERRUPTED = "Interrupted: this call was not run, or not to its end. Nothing is known of its result."
CANCELLED = "Cancelled by the user: this call was not run, or not to its end."
NO_OUTPUT = "(no output)"


def repair(messages: Sequence[Message]) -> list[Message]:
    """`messages` with each call answered once and directly after, unique call ids, nothing empty.

    A result that is missing is made up as an error that says so; one without a call, or a second one, is dropped. What
    already obeys comes back equal.
    """
    answers = _pair(messages)
    seen: dict[str, int] = {}
    repaired: list[Message] = []
    for position, message in enumerate(messages):
        blocks: list[AnyBlock] = []
        results: list[ToolResult] = []
        for place, block in enumerate(message.blocks):
            if not _belongs(message, block):
                continue
            if isinstance(block, ToolCall):
                block = msgspec.structs.replace(block, id=_unique(block.id, seen))
                results.append(_answer(answers.get((position, place)), block.id))
            blocks.append(block)
        if all(isinstance(block, Reasoning) for block in blocks):
            continue  # nothing, or thought without a word: no provider takes it back
        repaired.append(Message(message.role, tuple(blocks)))
        if results:
            repaired.append(Message("tool", tuple(results)))
    return repaired


def _belongs(message: Message, block: AnyBlock) -> bool:
    """Whether a block says something and stands where it may. Results never do: they are placed behind their calls."""
    match block:
        case Text():
            return message.role != "tool" and bool(block.text.strip())
        case ToolCall() | Reasoning():
            return message.role == "assistant"
        case Image():
            return message.role == "user"
        case ToolResult():
            return False


def _pair(messages: Sequence[Message]) -> dict[tuple[int, int], ToolResult]:
    """For each answered call, by message and block position, its result.

    A result belongs to the nearest message before it that has an unanswered call of its id, because ids may be used
    again later; calls of one message that share an id are answered in order.
    """
    waiting: dict[str, list[list[tuple[int, int]]]] = {}
    answers: dict[tuple[int, int], ToolResult] = {}
    for position, message in enumerate(messages):
        for place, block in enumerate(message.blocks):
            if isinstance(block, ToolCall) and message.role == "assistant":
                groups = waiting.setdefault(block.id, [])
                if groups and groups[-1][0][0] == position:
                    groups[-1].append((position, place))
                else:
                    groups.append([(position, place)])
            elif isinstance(block, ToolResult) and (groups := waiting.get(block.call_id, [])):
                answers[groups[-1].pop(0)] = block
                if not groups[-1]:
                    groups.pop()
    return answers


def _unique(call_id: str, seen: dict[str, int]) -> str:
    """`call_id`, or with a number behind it where it was used before. `seen` counts the uses."""
    candidate = call_id = call_id or "call"
    while candidate in seen:
        seen[call_id] += 1
        candidate = f"{call_id}-{seen[call_id]}"
    seen[candidate] = 1
    return candidate


def _answer(result: ToolResult | None, call_id: str) -> ToolResult:
    if result is None:
        return ToolResult(INTERRUPTED, is_error=True, call_id=call_id)
    content = result.content if result.content.strip() else NO_OUTPUT
    return msgspec.structs.replace(result, call_id=call_id, content=content)


class Conversation:
    """The messages of one conversation, and the only place that adds to them. Text enters it encodable.

    is_interrupted: whether the last message is what an interrupted answer had said.
    """

    def __init__(self, messages: Iterable[Message] = (), *, is_interrupted: bool = False) -> None:
        self._messages = repair(list(messages))
        self._is_interrupted = is_interrupted

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(self._messages)

    @property
    def is_interrupted(self) -> bool:
        return self._is_interrupted and bool(self._messages) and self._messages[-1].role == "assistant"

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is missing or broke off, so that it can go on without another message of the user."""
        return bool(self._messages) and (self._messages[-1].role != "assistant" or self.is_interrupted)

    def sendable(self) -> tuple[Message, ...]:
        """What a request carries: the messages, repaired."""
        self._messages = repair(self._messages)
        return tuple(self._messages)

    def replace(self, messages: Iterable[Message]) -> None:
        """Another history in place of this one: the same, made shorter."""
        self._messages = repair(list(messages))

    def add_user(self, text: str, images: Iterable[Image] = ()) -> None:
        self._messages.append(Message("user", (Text(join_surrogates(text)), *images)))

    def add_response(self, response: Response) -> None:
        self._is_interrupted = False
        self._messages.append(response.message)

    def add_partial(self, text: str) -> None:
        """What an interrupted answer had said: its text, without its unfinished calls."""
        if text.strip():
            self._messages.append(Message("assistant", (Text(join_surrogates(text)),)))
            self._is_interrupted = True

    def add_result(self, result: ToolResult) -> None:
        """The result of one call of the last response. It enters as soon as it is there, so that no cancel loses it."""
        clean = msgspec.structs.replace(result, content=join_surrogates(result.content), detail=None)
        last = self._messages[-1] if self._messages else None
        if last is not None and last.role == "tool":
            self._messages[-1] = Message("tool", (*last.blocks, clean))
        else:
            self._messages.append(Message("tool", (clean,)))

    def unanswered(self) -> tuple[ToolCall, ...]:
        """The calls of the last response that have no result yet."""
        answered: set[str] = set()
        for message in reversed(self._messages):
            if message.role != "tool":
                return tuple(call for call in message.tool_calls if call.id not in answered)
            answered.update(result.call_id for result in message.tool_results)
        return ()
