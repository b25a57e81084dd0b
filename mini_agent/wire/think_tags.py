"""Reasoning that comes inside the content, between `<think>` and `</think>`, as models without a reasoning parser send it.

The tags count at the very start of the content only; an answer may speak of them. A closing tag whose opening one never
came (some templates keep that in the prompt) is left out, because what stood before it is on the screen already.
"""

from typing import Literal

from mini_agent.wire.assembly import Assembler

_OPEN = "<think>"
_CLOSE = "</think>"
_BLANKS_HELD = 1024
"""Blank characters before a tag; held back until it is known whether there is one."""

_Stage = Literal["start", "inside", "behind", "watching", "plain"]


class ThinkTags:
    """Sorts pieces of content into text and reasoning. Holds back only what may be the beginning of a tag."""

    def __init__(self, assembler: Assembler) -> None:
        self._assembler = assembler
        self._stage: _Stage = "start"
        self._held = ""

    def add(self, piece: str) -> None:
        """A piece of content, cut anywhere."""
        if self.passes(piece):
            self._assembler.text(piece)
            return
        rest, self._held = self._held + piece, ""
        while rest:
            rest = self._step(rest)

    def passes(self, piece: str) -> bool:
        """Whether `add` would hand a piece on as text, as it is."""
        stage = self._stage
        return stage == "plain" or (stage == "watching" and not self._held and "<" not in piece)

    def end(self) -> None:
        """Lets go of what was held back: it was no tag. More may still follow."""
        held, self._held = self._held, ""
        if not held:
            return
        if self._stage == "inside":
            self._assembler.reasoning(held)
        else:
            self._stage = "watching"
            self._assembler.text(held)

    def _step(self, rest: str) -> str:
        """Takes what can be decided from the front of `rest` and gives what is still to be looked at."""
        match self._stage:
            case "start":
                return self._at_start(rest)
            case "inside":
                return self._inside(rest)
            case "behind":
                rest = rest.lstrip("\r\n")  # the empty line that templates put between the two
                if rest:
                    self._stage = "plain"
                return rest
            case "watching":
                return self._watching(rest)
            case "plain":
                self._assembler.text(rest)
                return ""

    def _at_start(self, rest: str) -> str:
        content = rest.lstrip()
        if len(rest) - len(content) > _BLANKS_HELD:
            self._stage = "watching"
            return rest
        if content.startswith(_OPEN):
            self._stage = "inside"
            return content[len(_OPEN) :]
        if content.startswith(_CLOSE):
            self._stage = "behind"
            return content[len(_CLOSE) :]
        if _OPEN.startswith(content) or _CLOSE.startswith(content):
            self._held = rest
            return ""
        self._stage = "watching"
        return rest

    def _inside(self, rest: str) -> str:
        before, tag, after = rest.partition(_CLOSE)
        if tag:
            self._stage = "behind"
        else:
            before = self._hold(before)
        if before:
            self._assembler.reasoning(before)
        return after

    def _watching(self, rest: str) -> str:
        """Text that no opening tag came before."""
        before, tag, after = rest.partition(_CLOSE)
        if _OPEN in before:
            self._stage = "plain"
            return rest
        if tag:
            self._stage = "plain"
        else:
            before = self._hold(before)
        if before:
            self._assembler.text(before)
        return after

    def _hold(self, text: str) -> str:
        """`text` without an end that may be the beginning of a tag, which is kept for the next piece."""
        start = text.rfind("<")
        if start >= 0 and (_CLOSE.startswith(text[start:]) or _OPEN.startswith(text[start:])):
            self._held = text[start:]
            return text[:start]
        return text
