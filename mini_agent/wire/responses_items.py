"""Which item of a response an event is about. Servers agree on the events, not on the ids and indices in them."""

from collections.abc import Iterator, Sequence
from typing import Literal

from mini_agent.wire.pieces import key_of

Kind = Literal["message", "reasoning", "call", "backend", "other"]
"""What an item is. backend: a tool that the provider runs itself. other: nothing that anybody here knows."""

Part = tuple[str, str | None]
"""A part of an item's text: where it comes from, and its index there."""

_KINDS: dict[str, Kind] = {"message": "message", "reasoning": "reasoning", "function_call": "call"}


class Item:
    """An item of the answer. index: where the provider puts it, None where it did not say.

    part, start: the part of its text that pieces are added to, and where in the text that begins; parts: all of them.
    given: the arguments that its first event had. streamed: whether arguments came since. told: whether it was said that
    the tool runs.
    """

    __slots__ = (
        "call_id",
        "done",
        "given",
        "index",
        "kind",
        "name",
        "part",
        "parts",
        "place",
        "source",
        "start",
        "streamed",
        "told",
    )

    def __init__(self, kind: Kind, place: str, index: str | None) -> None:
        self.kind = kind
        self.place = place
        self.index = index
        self.done = False
        self.part: Part | None = None
        self.parts: set[Part] = set()
        self.start = 0
        self.source = ""
        self.call_id = ""
        self.name = ""
        self.given: object = None
        self.streamed = False
        self.told = False

    def goes_on(self, source: str, index: str | None) -> bool:
        """Whether a piece belongs to the part that the last one belonged to. Not all servers number them always."""
        if self.part is None or self.part[0] != source:
            return False
        return index == self.part[1] or index is None or self.part[1] is None

    def begin(self, source: str, index: str | None, start: int) -> None:
        """Another part begins at that place of the text."""
        self.part, self.start = (source, index), start
        self.parts.add(self.part)


class Items:
    """The items of one response, by appearance."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._by_id: dict[str, Item] = {}
        self._by_index: dict[tuple[str, Kind], Item] = {}

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def added(self, kind: Kind, ids: Sequence[str], index: object) -> Item:
        """The item that an event announces: a new one, unless it was announced before."""
        known = self._by_id.get(ids[0]) if ids else self._by_index.get((key_of(index) or "", kind))
        if known is not None and known.kind == kind and (ids or not known.done):
            return known
        return self._open(kind, ids, index)

    def of(self, kind: Kind, ids: Sequence[str], index: object) -> Item:
        """The item that an event goes on with.

        An id that is known counts most. Some servers make up a new one for each event, others give every item the same
        index: then it is the open item of that kind at the index, and without an index the last open one.
        """
        for one in ids:
            if (item := self._by_id.get(one)) is not None and item.kind == kind:
                return item
        key = key_of(index)
        item = self._by_index.get((key or "", kind))
        if item is None or item.done:
            unfinished = (one for one in reversed(self._items) if one.kind == kind and not one.done)
            item = next(unfinished, None)
            if item is not None and key is not None and item.index is not None:
                item = None
        if item is None:
            return self._open(kind, ids, index)
        self._know(item, ids)
        return item

    def matched(self, listed: Sequence[tuple[Kind, Sequence[str]]]) -> list[Item]:
        """The items that the finished response lists, by id, else in their order among those of their kind."""
        found = [self._known(kind, ids) for kind, ids in listed]
        left = [item for item in self._items if item not in found]
        for place, (kind, ids) in enumerate(listed):
            if found[place] is None:
                item = next((one for one in left if one.kind == kind), None)
                if item is None:
                    found[place] = self._open(kind, ids, None)
                else:
                    left.remove(item)
                    found[place] = item
        return [item for item in found if item is not None]

    def _known(self, kind: Kind, ids: Sequence[str]) -> Item | None:
        items = (self._by_id.get(one) for one in ids)
        return next((item for item in items if item is not None and item.kind == kind), None)

    def _open(self, kind: Kind, ids: Sequence[str], index: object) -> Item:
        item = Item(kind, str(len(self._items)), key_of(index))
        self._items.append(item)
        if item.index is not None:
            self._by_index[item.index, kind] = item
        self._know(item, ids)
        return item

    def _know(self, item: Item, ids: Sequence[str]) -> None:
        for one in ids:
            self._by_id.setdefault(one, item)


def kind_of(item_type: str) -> Kind:
    """What an item of that type is. All tools but functions run at the provider, because nothing else was offered."""
    return _KINDS.get(item_type) or ("backend" if item_type.endswith("_call") else "other")


def ids_of(*given: object) -> list[str]:
    """The ids among these values."""
    return [one for one in given if isinstance(one, str) and one]


def texts_of(parts: object) -> list[str]:
    """The texts of a list of parts, none of them empty."""
    if not isinstance(parts, list):
        return []
    texts = (part.get("text") or part.get("refusal") for part in parts if isinstance(part, dict))
    return [text for text in texts if text and isinstance(text, str)]
