"""Joins the pieces of a text that come many a second, so that a journal has a line for a moment and not for a token."""

from collections.abc import Callable

from msgspec.structs import replace

from mini_agent.core.events import ChannelToken, ToolCallDelta, ToolOutput

Delta = ChannelToken | ToolCallDelta | ToolOutput
"""What comes in pieces: joined per channel, per call of an answer, per running call."""


class Joiner:
    """Holds pieces until they are taken.

    unfinished: how many characters at the end of a text must wait for what follows.
    """

    def __init__(self, unfinished: Callable[[str], int]) -> None:
        self._unfinished = unfinished
        self._runs: dict[tuple[object, ...], list[Delta]] = {}

    def add(self, delta: Delta) -> None:
        """Takes one piece; it may be a joined one already."""
        self._runs.setdefault(_belonging(delta), []).append(delta)

    def take(self) -> list[Delta]:
        """Everything that waits, joined, by where each began."""
        runs, self._runs = self._runs, {}
        return [_joined(run) for run in runs.values()]

    def take_finished(self) -> list[Delta]:
        """What waits, but for ends that must wait on."""
        finished: list[Delta] = []
        for key, run in list(self._runs.items()):
            text = "".join(map(_text, run))
            place = len(text) - self._unfinished(text)
            if place == 0:
                continue
            finished.append(_with_text(_joined(run), text[:place]))
            del self._runs[key]
            if place < len(text):
                # Its numbers went with the first part, so that none is counted twice.
                self._runs[key] = [_numbered(_with_text(run[-1], text[place:]), None, None)]
        return finished


def _belonging(delta: Delta) -> tuple[object, ...]:
    match delta:
        case ChannelToken():
            return (ChannelToken, delta.request_id, delta.attempt, delta.channel)
        case ToolCallDelta():
            return (ToolCallDelta, delta.request_id, delta.attempt, delta.index)
        case ToolOutput():
            return (ToolOutput, delta.call_id)


def _text(delta: Delta) -> str:
    return delta.arguments if isinstance(delta, ToolCallDelta) else delta.text


def _with_text(delta: Delta, text: str) -> Delta:
    return replace(delta, arguments=text) if isinstance(delta, ToolCallDelta) else replace(delta, text=text)


def _numbered(delta: Delta, first: int | None, last: int | None) -> Delta:
    return delta if isinstance(delta, ToolOutput) else replace(delta, n=None, n_first=first, n_last=last)


def _joined(run: list[Delta]) -> Delta:
    """One piece in place of many: the first one's time, the last one's names, the numbers of all."""
    if len(run) == 1:
        return run[0]
    last = run[-1]
    whole = replace(_with_text(last, "".join(map(_text, run))), t=run[0].t)
    numbers = [number for delta in run for number in _numbers(delta)]
    return _numbered(whole, min(numbers, default=None), max(numbers, default=None))


def _numbers(delta: Delta) -> list[int]:
    if isinstance(delta, ToolOutput):
        return []
    return [number for number in (delta.n, delta.n_first, delta.n_last) if number is not None]
