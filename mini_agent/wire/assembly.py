"""From deltas to blocks, and to the events that tell of them; the same for every protocol.

What is shown and what is kept are the same pieces, so that the text of the events adds up to that of the answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from mini_agent.core.events import (
    BackendToolCompleted,
    BackendToolStarted,
    Channel,
    ChannelToken,
    DoomLoopSignal,
    FirstToken,
    ReasoningCompleted,
    ResponseStarted,
    StreamEvent,
    ToolCallDelta,
)
from mini_agent.core.messages import AnyBlock, ToolCall, Usage
from mini_agent.wire.loading import dumps, encodable, loads_arguments
from mini_agent.wire.pieces import Call, Part, Pieces, key_of, word

UNNAMED = "unnamed"
"""The name of a call that came without one: no provider takes an empty name back."""

_NO_EXTRA: Mapping[str, Any] = {}


Order = Literal["canonical", "appearance"]
"""How blocks lie in the answer: reasoning, text, calls, where the protocol has one of each; else as they appeared."""


class Origin(msgspec.Struct, frozen=True):
    """What the events of one attempt are stamped with. started_t: unix seconds at which the attempt began."""

    request_id: str
    attempt: int
    started_t: float


class Assembler:
    """Puts one attempt's answer together and collects its events.

    `at` says which wire event the pieces come from, `take` gives the events since the last `take`, `end` is called at the
    end of the answer, `blocks` gives the answer.
    """

    def __init__(self, origin: Origin, order: Order = "canonical") -> None:
        self._order = order
        self._request_id = origin.request_id
        self._attempt = origin.attempt
        self._started_t = origin.started_t
        self._n = 0
        self._t = origin.started_t
        self._begun = False
        self._events: list[StreamEvent] = []
        self._parts: list[Part | Call] = []
        self._by_place: dict[str, Part] = {}
        self._last: dict[Channel, Part] = {}
        self._calls: list[Call] = []
        self._by_key: dict[str, Call] = {}
        self._by_id: dict[str, Call] = {}

    def at(self, n: int, t: float) -> None:
        """The pieces that follow come from wire event number `n`, received at `t` (unix seconds)."""
        self._n = n
        self._t = t

    def take(self) -> list[StreamEvent]:
        """The events since the last time."""
        events = self._events
        self._events = []
        return events

    def text(self, piece: str, place: str = "text") -> None:
        """A piece of the answer's text. place: names its block where the protocol has several."""
        if shown := self._part("text", place).add(piece):
            self._token("text", shown)

    def reasoning(self, piece: str, field: str | None = None, place: str = "reasoning") -> None:
        """A piece of reasoning. field: the wire field it came in; the first one is kept. place: as for `text`."""
        part = self._part("reasoning", place)
        if part.field is None:
            part.field = field
        if shown := part.add(piece):
            self._token("reasoning", shown)

    def piece(self, channel: Channel, piece: str, n: int, t: float) -> list[StreamEvent] | None:
        """What `at`, `text` or `reasoning`, and `take` do, at once, for a piece that goes on with what is there.

        None, and nothing done, where it takes more than that: at the beginning, and for what may hold half a character.
        """
        part = self._last.get(channel)
        if part is None or part is not self._by_place.get(channel) or not part.append(piece):
            return None
        return [
            ChannelToken(
                t=t, request_id=self._request_id, attempt=self._attempt, n=n, channel=channel, text=piece
            )
        ]

    def rest(self, place: str, whole: str, start: int = 0) -> str | None:
        """What is still to be said of a block, all of which from `start` on is said once more and whole.

        None where the pieces that came are not the beginning of it.
        """
        part = self._by_place.get(place)
        return whole if part is None else part.rest(whole, start)

    def size_of(self, place: str) -> int:
        """Characters of a block of text or reasoning so far."""
        part = self._by_place.get(place)
        return 0 if part is None else part.size

    def seal(
        self,
        place: str,
        *,
        field: str,
        signature: str | None = None,
        encrypted: str | None = None,
        item_id: str | None = None,
    ) -> None:
        """What a provider puts on a block of reasoning, kept byte for byte; what is None stays as it was."""
        part = self._by_place.get(place)
        if part is None:
            part = self._open("reasoning", place)
        part.field = field
        part.signature = part.signature if signature is None else signature
        part.encrypted = part.encrypted if encrypted is None else encrypted
        part.id = part.id if item_id is None else item_id

    def reasoning_completed(self, place: str, index: int) -> None:
        """A block of reasoning is whole; its seal is known by now."""
        part = self._by_place.get(place)
        if part is not None and part.channel == "reasoning":
            self._events.append(
                ReasoningCompleted(**self._stamp(), n=self._n, index=index, signature=part.signature)
            )

    def response_started(self, response_id: str, usage: Usage) -> None:
        """The provider gave the answer its id and says what it has read."""
        self._events.append(ResponseStarted(**self._stamp(), n=self._n, response_id=response_id, usage=usage))

    def backend_started(self, tool_id: str, name: str, given: Any) -> None:
        """A tool that the provider runs itself has started. given: its input."""
        self._events.append(
            BackendToolStarted(**self._stamp(), n=self._n, id=tool_id, name=name, input=encodable(given))
        )

    def backend_completed(self, tool_id: str, name: str, output: Any, *, is_error: bool) -> None:
        """It has ended."""
        self._events.append(
            BackendToolCompleted(
                **self._stamp(),
                n=self._n,
                id=tool_id,
                name=name,
                output=encodable(output),
                is_error=is_error,
            )
        )

    def doom_loop(self, labels: tuple[str, ...]) -> None:
        """The provider says that the answer repeats itself."""
        self._events.append(DoomLoopSignal(**self._stamp(), labels=labels))

    def tool_call(
        self,
        index: object,
        call_id: object,
        name: object,
        arguments: object,
        extra: Mapping[str, Any] = _NO_EXTRA,
    ) -> None:
        """A piece of a call, as the provider gave it: what is missing, null or of another type is told apart here.

        arguments: a fragment of their JSON text, or the value itself. A delta that says nothing starts no call.
        """
        key = key_of(index)
        own_id = word(call_id)
        own_name = word(name)
        fragment = arguments if isinstance(arguments, str) else "" if arguments is None else dumps(arguments)
        call = self._find(key, own_id, own_name, fragment)
        changed = call is None
        if call is None:
            if not (own_id or own_name or fragment):
                return
            call = Call(len(self._calls))
            self._calls.append(call)
            self._parts.append(call)
        if key is not None:
            call.key = key
            self._by_key[key] = call
        changed |= self._named(call, own_id, own_name)
        if extra:
            call.extra.update(encodable(extra))
        if fragment and call.is_placeholder():
            call.arguments = Pieces()
        elif call.repeated_by(fragment):
            fragment = ""
        shown = call.arguments.add(fragment)
        if shown or changed:
            self._delta(call, shown)

    def fill_call(self, key: str, call_id: str, name: str, whole: str = "") -> None:
        """What is missing of a call: its id, its name, and of its arguments, which are said once more and whole."""
        call = self._by_key.get(key)
        if call is None:
            self.tool_call(key, call_id, name, whole)
            return
        changed = self._named(call, call_id, name)
        shown = call.fill(whole) if whole else ""
        if shown or changed:
            self._delta(call, shown)

    def arrange(self, places: Sequence[str]) -> None:
        """Puts the blocks into an order that is known only at the end. places: of blocks, and keys of calls.

        Text keeps its order, and so do reasoning and calls, because they were shown in it.
        """
        ranks = {place: rank for rank, place in enumerate(places)}
        names = {id(part): name for name, part in (*self._by_place.items(), *self._by_key.items())}
        least = [0, 0, 0]
        ranked: list[tuple[int, Part | Call]] = []
        rank = 0
        for part in self._parts:
            kind = _rank(part)
            rank = least[kind] = max(least[kind], ranks.get(names.get(id(part), ""), rank))
            ranked.append((rank, part))
        self._parts = [part for _, part in sorted(ranked, key=lambda pair: pair[0])]

    def end(self) -> None:
        """Lets go of what was held back. More may still follow."""
        for part in self._parts:
            if isinstance(part, Part) and (left := part.end()):
                self._token(part.channel, left)
        for call in self._calls:
            if left := call.arguments.end():
                self._delta(call, left)

    def blocks(self) -> tuple[AnyBlock, ...]:
        """The answer's blocks in the order of the protocol, calls each with an id of its own."""
        parts = self._parts
        if self._order == "canonical":
            parts = sorted(parts, key=_rank)
        calls = {id(call): block for call, block in zip(self._calls, self._call_blocks(), strict=True)}
        blocks = (part.block() if isinstance(part, Part) else calls[id(part)] for part in parts)
        return tuple(block for block in blocks if block is not None)

    def _call_blocks(self) -> list[ToolCall]:
        """The calls in order of first appearance."""
        blocks: list[ToolCall] = []
        given = {call.id for call in self._calls}
        used: set[str] = set()
        for call in self._calls:
            call_id = call.id
            if not call_id or call_id in used:
                call_id = f"{call_id or 'call'}_{call.place}"
                while call_id in given or call_id in used:
                    call_id += "_"
            used.add(call_id)
            arguments, invalid = loads_arguments(str(call.arguments))
            if not call.name:
                arguments, invalid = {}, "the call has no name"
            blocks.append(ToolCall(call_id, call.name or UNNAMED, arguments, invalid, call.extra))
        return blocks

    @property
    def has_text(self) -> bool:
        """Whether some text was shown."""
        return self._size("text") > 0

    @property
    def has_reasoning(self) -> bool:
        """Whether some reasoning was shown."""
        return self._size("reasoning") > 0

    @property
    def has_calls(self) -> bool:
        """Whether a call was begun."""
        return bool(self._calls)

    def describe(self) -> str:
        """What there is so far, in words for an error message."""
        counts = {
            "characters of reasoning": self._size("reasoning"),
            "characters of text": self._size("text"),
            "tool calls": len(self._calls),
        }
        return ", ".join(f"{what}: {count}" for what, count in counts.items() if count) or "nothing"

    def _find(self, key: str | None, call_id: str, name: str, fragment: str) -> Call | None:
        """The call that a delta goes on with, None for a new one.

        An id tells calls apart better than an index: some give all calls the index 0, some give none. A delta without an
        id goes on with the latest call of its index, and without an index with the latest call.
        """
        last = self._calls[-1] if self._calls else None
        same_id = self._by_id.get(call_id) if call_id else None
        if key is None:
            # An id may come after the name, but then it does not bring another name.
            late = last if last is not None and not last.id and not name else None
            call = (same_id or late) if call_id else last
        elif (call := self._by_key.get(key)) is None:
            if call_id:
                return None if name else same_id
            # An index alone begins no call where the one before it had none: it is that one's.
            return last if last is not None and last.key is None and not name else None
        elif call_id and call.id and call.id != call_id:
            return same_id if same_id is not None and same_id.key == key else None
        if call is None or (call_id and call.id == call_id):
            return call
        return None if call.ended_by(name, fragment) else call

    def _named(self, call: Call, call_id: str, name: str) -> bool:
        """Takes an id and a name, or a part of one; says whether anything is new."""
        new = bool(call_id) and not call.id
        if new:
            call.id = call_id
            self._by_id[call_id] = call
        return call.rename(name) or new

    def _size(self, channel: Channel) -> int:
        return sum(part.size for part in self._parts if isinstance(part, Part) and part.channel == channel)

    def _part(self, channel: Channel, place: str) -> Part:
        """The block that a piece is added to.

        A block behind which more was shown already is not gone on with, so that the answer reads as it was shown.
        """
        part, last = self._by_place.get(place), self._last.get(channel)
        if part is not None and part is last:
            return part
        if last is not None and (left := last.end()):
            self._token(channel, left)
        if part is None or (last is not None and last.size and last.number > part.number):
            part = self._open(channel, place)
        self._last[channel] = part
        return part

    def _open(self, channel: Channel, place: str) -> Part:
        part = Part(channel, len(self._parts))
        self._parts.append(part)
        self._by_place[place] = part
        return part

    def _stamp(self) -> dict[str, Any]:
        return {"t": self._t, "request_id": self._request_id, "attempt": self._attempt}

    def _token(self, channel: Channel, piece: str) -> None:
        if not self._begun:
            self._begin()
        self._events.append(
            ChannelToken(
                t=self._t,
                request_id=self._request_id,
                attempt=self._attempt,
                n=self._n,
                channel=channel,
                text=piece,
            )
        )

    def _delta(self, call: Call, fragment: str) -> None:
        if fragment and not self._begun:
            self._begin()
        self._events.append(
            ToolCallDelta(
                t=self._t,
                request_id=self._request_id,
                attempt=self._attempt,
                n=self._n,
                index=call.place,
                id=call.id,
                name=call.name,
                arguments=fragment,
            )
        )

    def _begin(self) -> None:
        self._begun = True
        self._events.append(
            FirstToken(
                t=self._t,
                request_id=self._request_id,
                attempt=self._attempt,
                n=self._n,
                ttft_s=self._t - self._started_t,
            )
        )


def _rank(part: Part | Call) -> int:
    """Reasoning, text, calls."""
    if isinstance(part, Call):
        return 2
    return 1 if part.channel == "text" else 0
