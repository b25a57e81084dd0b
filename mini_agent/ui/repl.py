"""The REPL: one turn after another.

What is imported here is loaded before the first prompt is on the screen, so it is light; the heavy rooms are loaded by
whoever gives `open_session`, once `on_ready` has said that the prompt is up.
"""

import asyncio
import base64
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

from prompt_toolkit.completion import merge_completers
from prompt_toolkit.input import Input

from mini_agent.core.events import AgentEvent, TurnReason
from mini_agent.core.status import Status
from mini_agent.ui.attachments import attached
from mini_agent.ui.busy import Busy, Turn
from mini_agent.ui.commands import COMMANDS, find, unknown
from mini_agent.ui.completion import CommandCompleter, PathCompleter
from mini_agent.ui.flow import NewText, user_rows
from mini_agent.ui.keys import Typed, keep_early, open_input
from mini_agent.ui.live import Live, can_move
from mini_agent.ui.mentions import mentions
from mini_agent.ui.ports import Facts, ListPaths, OpenSession, Resumed, SessionPort
from mini_agent.ui.prompt import Prompt
from mini_agent.ui.receipt import bottom_line
from mini_agent.ui.signals import handled
from mini_agent.ui.text import neutralise, paint, wrap
from mini_agent.ui.view import View

T = TypeVar("T")

RECALLED_ROWS = 12
"""Of the last answer, where a session goes on."""

_GO_ON: tuple[TurnReason | None, ...] = ("failed", "max_steps", "repetition")
"""Ends after which Enter on an empty line goes on. After Ctrl+C it does not: the user wanted an end; /retry is there."""


async def repl(
    facts: Facts,
    open_session: OpenSession,
    new_text: NewText,
    list_paths: ListPaths,
    *,
    first_prompt: str | None = None,
    on_ready: Callable[[], None] | None = None,
    source: Input | None = None,
    environ: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Talks with the user until they leave; returns the exit code.

    on_ready: called once, when the first prompt is on the screen. The session is opened after that, and awaited when
    the first message is sent; new_text is called no earlier. source: the keyboard, else the terminal's.
    """
    return await _Repl(
        facts,
        open_session,
        new_text,
        list_paths,
        first_prompt,
        on_ready,
        source or open_input(),
        environ,
        clock,
    ).run()


class _Repl:
    """Implements `commands.Shell`."""

    def __init__(
        self,
        facts: Facts,
        open_session: OpenSession,
        new_text: NewText,
        list_paths: ListPaths,
        first_prompt: str | None,
        on_ready: Callable[[], None] | None,
        source: Input,
        environ: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._facts = facts
        self._open_session = open_session
        self._on_ready = on_ready
        self._input = source
        self._clock = clock
        moving = can_move(environ.get("TERM", ""))
        self._live = Live(
            sys.stdout.fileno(),
            encoding=sys.stdout.encoding or "utf-8",
            colour=moving and not environ.get("NO_COLOR"),
            moving=moving,
            clock=clock,
            lost=self._lost,
            frame_s=1 / facts.frame_rate,
        )
        self._paths = PathCompleter(list_paths, clock=clock, refreshed=lambda: self._prompt.offer_again())
        self._prompt = Prompt(
            source,
            moving=moving,
            clock=clock,
            rendered=self._ready,
            bottom=self._bottom,
            history=facts.history,
            completer=merge_completers([CommandCompleter(COMMANDS), self._paths]),
        )
        self._typed = Typed()
        self._queue = [first_prompt] if first_prompt else []
        self._opening: asyncio.Task[SessionPort] | None = None
        self._busy = Busy(
            self._live,
            source,
            self._typed,
            new_text=new_text,
            streamed=facts.stream,
            thinks_aloud=facts.reasoning == "full",
            cancelled=self._cancelled,
            lost=self._lost,
            clock=clock,
        )
        self._was_cancelled = False
        self._reasoning = ""
        self._can_go_on = facts.resumed is not None and facts.resumed.is_open  # with Enter on an empty line
        self._is_ready = False
        self._leaving = False
        self._code = 0
        self._main: asyncio.Task[object] | None = None

    async def run(self) -> int:
        self._main = asyncio.current_task()
        with (
            self._input.raw_mode(),
            handled(self._handlers()),
        ):  # a second signal must not end the clean-up after the first
            try:
                keep_early(self._input)
                self._hello()
                while not self._leaving:
                    await self._step()
            except EOFError:
                pass  # the user leaves
            except asyncio.CancelledError:
                if not self._leaving or self._main is None:
                    raise
                self._main.uncancel()  # it was our own: a signal, or a terminal that is gone
            finally:
                self._paths.stop()
                self._farewell()
                self._live.close()
                await self._close_session()
        return self._code

    def say(self, text: str) -> None:
        """Prints lines above whatever comes next."""
        self._live.commit(wrap(neutralise(text), self._live.width))

    def leave(self) -> None:
        self._leaving = True

    def copy(self, text: str) -> None:
        """By OSC 52, which also works from afar; a terminal that does not know it ignores it."""
        self._live.send(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07")

    @property
    def reasoning(self) -> str:
        return self._reasoning

    def _hello(self) -> None:
        facts = self._facts
        self._live.clear_row()
        if facts.is_demo:
            key = facts.key_env or "DEEPSEEK_API_KEY"
            model = f"demo model (set {key} to use {key.removesuffix('_API_KEY').lower()})"
        else:
            model = f"{facts.profile} · {facts.model} · {facts.mode}"
        self.say(f"mini-agent {facts.version} · {model} · /help")
        for notice in facts.notices:
            self._say_styled(notice, "yellow")
        if facts.resumed is not None:
            self._recall(facts.resumed)

    def _recall(self, resumed: Resumed) -> None:
        """What was said last, so that one knows where one is."""
        turns = f"{resumed.turns} turn{'s' * (resumed.turns != 1)}"
        self._say_styled(f"session {resumed.id} goes on: {turns}; the last one:", "dim")
        width = self._live.width
        self._live.commit(user_rows(resumed.prompt, width)[:RECALLED_ROWS])
        rows = wrap(neutralise(resumed.answer.strip()), width) if resumed.answer.strip() else []
        left_out = [f"… {len(rows) - RECALLED_ROWS} rows more"] if len(rows) > RECALLED_ROWS else []
        self._live.commit([paint(row, "dim") for row in (*left_out, *rows[-RECALLED_ROWS:])])
        if resumed.is_interrupted:
            self._say_styled("✗ interrupted", "yellow")
        self._invite()
        self._live.commit([""])

    def _farewell(self) -> None:
        if (session := self._opened()) is not None and session.id:
            self._say_styled(f"mini-agent -c goes on with this session ({session.id})", "dim")

    def _invite(self) -> None:
        if self._can_go_on:
            self._say_styled("↵ Enter on an empty line, or /retry, goes on from here", "dim")

    def _say_styled(self, text: str, style: str) -> None:
        self._live.commit([paint(row, style) for row in wrap(neutralise(text), self._live.width)])

    async def _step(self) -> None:
        """One message, from the queue or from the prompt, and what it leads to. Raises EOFError."""
        if self._queue:
            text = self._queue.pop(0)
            self._live.commit(user_rows(text, self._live.width))
            self._prompt.remember(text)
        else:
            cancelled, self._was_cancelled = self._was_cancelled, False
            text = await self._prompt.ask(self._typed.take_all(), cancelled=cancelled)
        if command := find(text):
            await self._command(*command)
        elif text.startswith("!") and (own := text[1:].strip()):
            await self._play(lambda session: session.shell(own))
        elif text.strip():
            await self._run_turn(text)
        elif self._can_go_on:
            await self._run_turn(None)

    async def _command(self, name: str, rest: str) -> None:
        if known := COMMANDS.get(name):
            await known.run(self, rest)
        else:
            self._say_styled(unknown(name), "yellow")

    async def retry(self) -> None:
        """Goes on with the turn that stopped before its answer."""
        session = None if self._can_go_on else await self.session()
        if self._can_go_on or (session is not None and session.is_waiting):
            await self._run_turn(None)
        else:
            self._say_styled("there is nothing to go on with: the last turn has its answer", "yellow")

    # The session

    def _ready(self) -> None:
        """The first prompt is on the screen: now the heavy parts may be loaded."""
        if self._is_ready:
            return
        self._is_ready = True
        if self._on_ready:
            self._on_ready()
        self._open()

    def _open(self) -> asyncio.Task[SessionPort]:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_session(self._busy.approve, self._queued))
        return self._opening

    async def session(self) -> SessionPort | None:
        """The session, or None where the user did not want to wait for it. Raises ConfigError."""
        return self._opened() or await self.waited(self._awaited())

    async def _awaited(self) -> SessionPort:
        opening = self._open()
        try:
            return await asyncio.shield(opening)
        finally:
            if opening.done() and not opening.cancelled() and opening.exception():
                self._opening = None  # the next message tries again

    async def _close_session(self) -> None:
        if self._opening is None:
            return
        self._opening.cancel()
        await asyncio.wait({self._opening})
        if (session := self._opened()) is not None:
            await session.aclose()

    def _opened(self) -> SessionPort | None:
        """The session, if it is there already."""
        opening = self._opening
        if opening is None or not opening.done() or opening.cancelled() or opening.exception():
            return None
        return opening.result()

    def _bottom(self) -> str:
        """The line under the prompt."""
        session = self._opened()
        if session is not None:
            return bottom_line(session.status)
        return bottom_line(Status(model=self._facts.model, mode=self._facts.mode, effort=None))

    def _queued(self) -> list[str]:
        """What was finished meanwhile, up to the first command: that is for us, and what follows it comes after it."""
        texts = self._typed.take_messages(lambda line: line.startswith("!") or find(line) is not None)
        for text in texts:
            self._prompt.remember(text)
        return texts

    # A turn

    async def _run_turn(self, text: str | None) -> None:
        """One turn on the screen. text: None goes on with the last one."""
        images, problems = attached(text or "", Path(self._facts.folder), self._facts.home)
        for problem in problems:
            self._say_styled(problem, "yellow")
        if images:
            self._say_styled(f"with {len(images)} image{'s' * (len(images) > 1)}", "dim")
        self._paths.remember(mention.path for mention in mentions(text or ""))
        await self._play(lambda session: session.run(text, images), unsent=text or "")

    async def compact(self) -> None:
        """Has the conversation summed up."""
        await self._play(lambda session: session.compact())

    async def _play(self, run: Callable[[SessionPort], AsyncGenerator[AgentEvent]], unsent: str = "") -> None:
        """Shows a turn's events. unsent: what comes back to the line where the user stops before it went out."""
        was_sent = False

        async def events(turn: Turn) -> None:
            nonlocal was_sent
            self._ready()
            if (session := await turn.unless_stopped(self._awaited())) is None:
                return
            was_sent = True
            async with aclosing(run(session)) as told:
                async for event in told:
                    turn.view.feed(event)
                    if turn.stopped.is_set():
                        session.cancel()  # again: the first time may have been before there was anything to cancel

        before = self._opened()
        view = await self._busy.show(events, None if before is None else before.status.price)
        self._reasoning = view.reasoning
        if was_sent:
            session = self._opened()
            self._can_go_on = view.reason in _GO_ON and session is not None and session.is_waiting
        self._invite()
        self._live.commit([""])
        self._take_typed(view, unsent="" if was_sent else unsent)

    async def waited(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` gives, shown as something that is going on; None where the user stopped it."""
        return await self._busy.waited(work)

    def _take_typed(self, view: View, unsent: str) -> None:
        """Lines finished meanwhile are the next messages; after anything but a good end the user looks at them again."""
        self._was_cancelled = view.reason in (None, "cancelled")
        if view.reason in ("done", "denied"):
            self._queue += self._typed.finished
            self._typed.finished.clear()
        else:
            self._typed.finished[:0] = [*([unsent] if unsent else []), *self._queue]
            self._queue.clear()

    def _cancelled(self) -> None:
        """Ctrl+C or Esc during a turn."""
        if (session := self._opened()) is not None:
            session.cancel()

    # The way out

    def _lost(self) -> None:
        """The terminal is gone: what SIGHUP says, too."""
        self._end(128 + 1)

    def _end(self, code: int) -> None:
        if not self._leaving and self._main:
            self._leaving = True
            self._code = code
            self._main.cancel()

    def _interrupt(self) -> None:
        """SIGINT from outside: what Ctrl+C would do."""
        if not self._busy.cancel():
            self._prompt.interrupt()

    def _handlers(self) -> dict[str, Callable[[], None]]:
        return {
            "SIGINT": self._interrupt,
            "SIGTERM": lambda: self._end(128 + 15),
            "SIGHUP": lambda: self._end(128 + 1),
            "SIGWINCH": self._live.changed,
        }
