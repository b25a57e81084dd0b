"""What an answer is put together from: text in pieces, blocks and calls in the making."""

from typing import Any

from mini_agent.core.events import Channel
from mini_agent.core.messages import AnyBlock, Reasoning, Text
from mini_agent.core.surrogates import join_surrogates
from mini_agent.wire.loading import loads


class Pieces:
    """Text that comes in pieces. Half a UTF-16 pair at the end of a piece waits for its other half."""

    __slots__ = ("_half", "_parts", "size")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._half = ""
        self.size = 0

    def add(self, piece: str) -> str:
        """Takes a piece and gives what can be shown now."""
        if self._half or not piece.isascii():
            piece = self._half + piece
            self._half = piece[-1] if "\ud800" <= piece[-1:] <= "\udbff" else ""
            piece = join_surrogates(piece[:-1] if self._half else piece)
        if piece:
            self._parts.append(piece)
            self.size += len(piece)
        return piece

    def append(self, piece: str) -> bool:
        """Takes a piece that is shown as it is; False, and not taken, where `add` has to look at it."""
        if self._half or not self.size or not piece.isascii():
            return False
        self._parts.append(piece)
        self.size += len(piece)
        return True

    def end(self) -> str:
        """What is left to show: U+FFFD for a half whose other half did not come."""
        if not self._half:
            return ""
        self._half = ""
        return self.add("\ufffd")

    def rest(self, whole: str, start: int = 0) -> str | None:
        """What is still to be added, where all of what came from `start` on is said once more and whole.

        None where what came is not the beginning of it.
        """
        whole = join_surrogates(whole)
        if start > self.size or not whole.startswith(str(self)[start:]):
            return None
        self._half = ""  # it is in the whole
        return whole[self.size - start :]

    @property
    def last(self) -> str:
        """The end of it, at least a character where there is one."""
        return self._parts[-1] if self._parts else ""

    def __str__(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""


class Part(Pieces):
    """A block of text or reasoning in the making, with the provider's seal on it. number: its place among all blocks."""

    __slots__ = ("channel", "encrypted", "field", "id", "number", "signature")

    def __init__(self, channel: Channel, number: int) -> None:
        super().__init__()
        self.channel = channel
        self.number = number
        self.field: str | None = None
        self.signature: str | None = None
        self.encrypted: str | None = None
        self.id: str | None = None

    def block(self) -> AnyBlock | None:
        """The block, None where there is nothing in it."""
        if self.channel == "text":
            return Text(str(self)) if self.size else None
        if not (self.size or self.signature or self.encrypted):
            return None
        return Reasoning(str(self), self.field, self.signature, self.encrypted, self.id)


class Call:
    """A tool call in the making. place: from 0, by first appearance. key: the provider's index, None where it gave none."""

    __slots__ = ("arguments", "extra", "id", "key", "name", "place")

    def __init__(self, place: int) -> None:
        self.place = place
        self.key: str | None = None
        self.id = ""
        self.name = ""
        self.arguments = Pieces()
        self.extra: dict[str, Any] = {}

    def rename(self, name: str) -> bool:
        """Takes a name or a part of one; says whether it changed anything.

        Some providers repeat the name with every delta, some split it, some send as much of it as they have. A part that
        equals all that came before it counts as a repetition. Once arguments have come, the name is whole.
        """
        if not name or name == self.name or (self.name and self.arguments.size):
            return False
        self.name = name if name.startswith(self.name) else self.name + name
        return True

    def fill(self, whole: str) -> str:
        """Takes the arguments whole, of which all, a part or nothing may have come; gives what can be shown now.

        The pieces count, unless they are no JSON document by themselves and the whole does not begin with them.
        """
        if self.is_placeholder() and whole != "{}":
            self.arguments = Pieces()
        rest = self.arguments.rest(whole)
        if rest is not None:
            return self.arguments.add(rest)
        if whole.strip() not in ("", "{}") and not self._complete():
            self.arguments = Pieces()
            self.arguments.add(whole)
        return ""

    def repeated_by(self, fragment: str) -> bool:
        """Whether a fragment says complete arguments once more, as some do in their last chunk."""
        return len(fragment) == self.arguments.size and fragment == str(self.arguments) and self._complete()

    def ended_by(self, name: str, fragment: str) -> bool:
        """Whether a delta that names a call, but gives no other id or index, begins another one."""
        if not name or not self.arguments.size:
            return False
        if name != self.name:
            return True
        if not fragment.startswith("{") or self.is_placeholder():
            return False
        return self._complete() and not self.repeated_by(fragment)

    def is_placeholder(self) -> bool:
        """Whether the arguments are `{}`, which some send first and the real ones after it."""
        return self.arguments.size == 2 and str(self.arguments) == "{}"

    def _complete(self) -> bool:
        """Whether the arguments are a JSON document as they stand."""
        if not self.arguments.last.endswith("}"):
            return False
        try:
            loads(str(self.arguments))
        except ValueError:
            return False
        return True


def key_of(index: object) -> str | None:
    """A provider's index, whatever type it has; only ever compared, so that it may begin at one."""
    if isinstance(index, float) and index.is_integer():
        index = int(index)
    if isinstance(index, int) and not isinstance(index, bool):
        return str(index)
    return index.strip() or None if isinstance(index, str) else None


def word(value: object) -> str:
    """An id or a name; of another type at worst."""
    if isinstance(value, str):
        return join_surrogates(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""
