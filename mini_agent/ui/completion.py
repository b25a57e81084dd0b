"""What Tab completes, and what is offered while one types: slash commands, and `@path` anywhere in a message."""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from mini_agent.ui.commands import Command
from mini_agent.ui.fuzzy import CHUNK, Index
from mini_agent.ui.mentions import typed, written
from mini_agent.ui.text import neutralise

FRESH_S = 5.0
"""A listing serves for so long; one that took long for ten times as long as it took."""

LISTING_S = 10.0
"""A listing ends after so long, with what it has."""

FIRST_S = 0.03
"""The first answer waits for the listing for so long; then it is made of what there is."""

RECENT = 20
"""How many paths used of late come before others."""

_COMMAND = re.compile(r"/([\w-]*)")


class CommandCompleter(Completer):
    """Slash commands, at the start of a message."""

    def __init__(self, commands: Mapping[str, Command]) -> None:
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        found = _COMMAND.fullmatch(document.text_before_cursor)
        if found is None:
            return
        index = Index()
        index.add(list(self._commands))
        for name in index.search(found[1]):
            yield Completion(f"/{name}", -len(found[0]), display_meta=self._commands[name].summary)


class PathCompleter(Completer):
    """`@path`, from a listing of the workspace that is made when the first `@` is typed, and anew when it is old.

    Lives on the event loop; listing and searching are done in threads. The listing goes on between two keys, and the
    answers become better with it.

    list_paths: begins a listing; called, and gone through, in a thread. Paths have `/` between names and behind a folder.
    clock: seconds, from any thread. refreshed: called when a listing is complete after an answer from a part of it.
    """

    def __init__(
        self,
        list_paths: Callable[[], Iterable[Sequence[str]]],
        *,
        clock: Callable[[], float],
        refreshed: Callable[[], None] = lambda: None,
    ) -> None:
        self._list_paths = list_paths
        self._clock = clock
        self._refreshed = refreshed
        self._recent: list[str] = []
        self._index: Index | None = None
        self._listing: _Listing | None = None
        self._old_at = float("-inf")
        self._was_partial = False

    def remember(self, paths: Iterable[str]) -> None:
        """Paths of the workspace that were mentioned: they come first from now on."""
        for path in paths:
            self._recent = [path, *(other for other in self._recent if other != path)][:RECENT]

    def stop(self) -> None:
        """The prompt ends: no listing goes on behind it. What a complete one has found is kept."""
        if self._listing is not None:
            self._listing.stop()
            self._listing = None
            self._was_partial = False

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Nothing: the prompt asks `get_completions_async`."""
        return ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        mention = typed(document.text_before_cursor)
        if mention is None:
            return
        index = await self._paths()
        recent = self._recent.copy()
        for path in await asyncio.to_thread(index.search, mention.path, recent):
            is_there = path.endswith("/") and path == mention.path  # one goes on from it
            if not is_there and (text := _inserted(path)) is not None:
                folder, name = _divided(path)
                yield Completion(text, -mention.length, display=name, display_meta=folder)

    async def _paths(self) -> Index:
        """What is known of the paths now."""
        if self._listing is None and self._clock() >= self._old_at:
            self._listing = _Listing(self._list_paths, self._clock, self._listed)
        if self._index is not None:
            return self._index
        listing = self._listing
        assert listing is not None
        await asyncio.wait({listing.work}, timeout=FIRST_S)
        self._was_partial = not listing.work.done()
        return listing.index

    def _listed(self, listing: "_Listing", took_s: float) -> None:
        if listing is not self._listing:
            return
        self._listing = None
        self._index = listing.index
        self._old_at = self._clock() + max(FRESH_S, 10 * took_s)
        if self._was_partial:
            self._was_partial = False
            self._refreshed()


class _Listing:
    """One pass over the workspace, in a thread. `index` fills while it goes on."""

    def __init__(
        self,
        list_paths: Callable[[], Iterable[Sequence[str]]],
        clock: Callable[[], float],
        done: Callable[["_Listing", float], None],
    ) -> None:
        self.index = Index()
        self._list_paths = list_paths
        self._clock = clock
        self._stopped = threading.Event()
        self.work = asyncio.get_running_loop().run_in_executor(None, self._run)
        self.work.add_done_callback(lambda work: done(self, work.result()))

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> float:
        """Seconds it took."""
        began = self._clock()
        paths: list[str] = []
        enough = 1  # the first folder is searched at once, later ones by the thousand
        for batch in self._list_paths():
            if self._stopped.is_set() or self._clock() - began > LISTING_S:
                break
            paths += batch if _is_plain("".join(batch)) else filter(_is_plain, batch)
            if len(paths) >= enough:
                self.index.add(paths)
                paths = []
                enough = min(2 * enough, CHUNK)
        self.index.add(paths)
        return self._clock() - began


def _is_plain(text: str) -> bool:
    """Whether names can be shown and typed as they are, each on a line."""
    return neutralise(text) == text and "\n" not in text and "\t" not in text


def _inserted(path: str) -> str | None:
    """What is put into the line for a path; the quotes around a folder stay open, so that typing goes on in it."""
    text = written(path)
    if text and path.endswith("/") and not text.endswith("/"):
        return text[:-1]
    return text


def _divided(path: str) -> tuple[str, str]:
    """The folder that a path is in, and its last name."""
    at = path.rfind("/", 0, -1) + 1
    return path[:at], path[at:]
