"""Signals, where the system has them and the event loop can handle them (Windows can't)."""

import asyncio
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress


@contextmanager
def handled(handlers: Mapping[str, Callable[[], None]]) -> Generator[None]:
    """Calls a handler in the event loop when its signal comes, as long as the context lasts. Names are like `SIGINT`."""
    loop = asyncio.get_running_loop()
    taken: list[int] = []
    for name, handler in handlers.items():
        number = getattr(signal, name, None)
        with suppress(NotImplementedError, RuntimeError):
            if number is not None:
                loop.add_signal_handler(number, handler)
                taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
