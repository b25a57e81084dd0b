"""The terminal while something goes on: a turn, or anything else that takes a while. Keys and screen belong to it then."""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, TypeVar

from prompt_toolkit.input import Input

from mini_agent.core.errors import MiniAgentError
from mini_agent.core.permission import ApprovalRequest, Decision
from mini_agent.core.profile import Price
from mini_agent.ui import approval
from mini_agent.ui.flow import NewText
from mini_agent.ui.keys import Keys, Typed
from mini_agent.ui.live import Live, Stray
from mini_agent.ui.view import View

T = TypeVar("T")


class Turn:
    """What belongs to one of these times and dies with it."""

    def __init__(self, view: View, keys: Keys) -> None:
        self.view = view
        self.keys = keys
        self.stopped = asyncio.Event()
        self.asking = asyncio.Lock()  # one question at a time

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` gives, or None as soon as the user stops it; it is cancelled then."""
        task = asyncio.ensure_future(work)
        stopped = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            for one in (task, stopped):
                one.cancel()
            await asyncio.wait({task, stopped})


class Busy:
    """Gives screen and keys to one thing at a time.

    new_text: what an answer is shown by. cancelled: told of Ctrl+C and Esc. lost: the terminal is gone. clock: seconds, any
    origin.
    """

    def __init__(
        self,
        live: Live,
        source: Input,
        typed: Typed,
        *,
        new_text: NewText,
        streamed: bool,
        thinks_aloud: bool = False,
        cancelled: Callable[[], None],
        lost: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._live = live
        self._input = source
        self._typed = typed
        self._new_text = new_text
        self._streamed = streamed
        self._thinks_aloud = thinks_aloud
        self._cancelled = cancelled
        self._lost = lost
        self._clock = clock
        self._turn: Turn | None = None

    def cancel(self) -> bool:
        """Stops what goes on; False where nothing does."""
        if self._turn is None:
            return False
        self._turn.stopped.set()
        self._cancelled()
        return True

    def _suspend(self) -> None:
        """Ctrl+Z: the terminal is the shell's until `fg`, when everything is painted anew. Not where there are no jobs."""
        if sys.platform == "win32":
            return
        self._live.pause()
        with self._input.cooked_mode():
            os.kill(0, signal.SIGTSTP)  # as the terminal itself would: to the whole job
        self._live.resume()

    async def approve(self, request: ApprovalRequest) -> Decision:
        """The user's word on a call."""
        if (turn := self._turn) is None:
            return Decision(False, "nobody was there to be asked")
        async with turn.asking:
            return await approval.ask(request, turn.view, turn.keys, self._live.width)

    async def waited(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What `work` gives; None where the user stopped it, or where it failed, which is shown."""
        given: T | None = None

        async def wait(turn: Turn) -> None:
            nonlocal given
            given = await turn.unless_stopped(work)

        await self.show(wait, doing="waiting")
        return given

    async def show(
        self, play: Callable[[Turn], Awaitable[None]], price: Price | None = None, doing: str = "starting"
    ) -> View:
        """Gives the screen and the keys to `play`; afterwards they are the prompt's again. What it raises is shown."""
        view = View(
            self._live,
            new_text=self._new_text,
            streamed=self._streamed,
            thinks_aloud=self._thinks_aloud,
            clock=self._clock,
            price=price,
            doing=doing,
        )
        keys = Keys(
            self._input,
            self._typed,
            cancel=self.cancel,
            changed=self._live.changed,
            closed=self._lost,
            suspend=self._suspend,
            clock=self._clock,
        )
        turn = self._turn = Turn(view, keys)
        loop = asyncio.get_running_loop()
        stray = Stray(lambda line: loop.call_soon_threadsafe(view.stray, line))
        self._live.start(lambda: [*view.rows(), *self._typed.rows(self._live.width)])
        try:
            with keys.reading(), redirect_stdout(stray), redirect_stderr(stray):
                await play(turn)
        except MiniAgentError as error:
            view.trouble(str(error))
        except Exception as error:  # noqa: BLE001  a defect of ours must not take the conversation along
            view.trouble(_defect(error))
        except asyncio.CancelledError:
            view.cut_short()
            raise
        finally:
            if rest := stray.rest().strip():
                view.stray(rest)
            self._turn = None
            self._live.stop()
        return view


def _defect(error: Exception) -> str:
    """An error nobody expected, with the place it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"a defect of mini-agent: {type(error).__name__}: {error}{where}"
