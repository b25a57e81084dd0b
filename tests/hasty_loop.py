"""An event loop whose waits cost no time: where nothing is ready, its clock jumps to the next timer.

Sockets are real, and work as ever where both ends are in this loop. So a deadline, a backoff and a stalled provider are
what they are in the program, and take a few milliseconds.
"""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

GRACE_S = 0.002
"""Real seconds that are given to what is on its way through the system before the clock jumps."""


class _Selector(selectors.DefaultSelector):
    """Counts what it did not wait. busy: threads that are at work for the loop; the clock does not run ahead of them."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_s = 0.0
        self.busy = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= GRACE_S or self.busy:
            return super().select(timeout)
        ready = super().select(GRACE_S)
        if not ready:
            self.skipped_s += timeout - GRACE_S
        return ready


class HastyLoop(asyncio.SelectorEventLoop):
    """`asyncio.Runner(loop_factory=HastyLoop)`."""

    def __init__(self) -> None:
        self._hasty = _Selector()
        super().__init__(self._hasty)

    def time(self) -> float:
        return super().time() + self._hasty.skipped_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._hasty.busy += 1
        future.add_done_callback(self._is_back)
        return future

    def _is_back(self, _: asyncio.Future[Any]) -> None:
        self._hasty.busy -= 1
