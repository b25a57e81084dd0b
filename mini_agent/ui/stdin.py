"""Standard input as (part of) a prompt."""

import os
import queue
import threading
from collections.abc import Callable
from typing import TextIO

SILENCE_S = 3.0
"""How long a pipe beside a given prompt may say nothing before it is left out."""

Say = Callable[[str], None]


def piped_prompt(prompt: str, stdin: TextIO | None, say: Say, *, silence_s: float = SILENCE_S) -> str:
    """The whole prompt: `-` stands for standard input; what is piped in beside a text is appended to it.

    A pipe that says nothing for `silence_s` is left out, and `say` is told: some callers leave one open for ever.
    """
    if stdin is None or (prompt != "-" and stdin.isatty()):
        return "" if prompt == "-" else prompt
    if prompt == "-":
        if stdin.isatty():
            say("type the prompt, and end it with Ctrl+D on a line of its own")
        return _read(stdin, None) or ""
    piped = _read(stdin, silence_s)
    if piped is None:
        say(f"standard input said nothing for {silence_s:g} s and is left out (close it with </dev/null)")
    return f"{prompt}\n\n{piped}" if piped and piped.strip() else prompt


def _read(stdin: TextIO, silence_s: float | None) -> str | None:
    """Everything up to the end of `stdin`, None where nothing came in time.

    Read in a thread, because no portable call waits for a pipe with a limit, and past Python's own buffer, whose lock a
    thread that still reads would hold when the program ends.
    """
    pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        try:
            while piece := os.read(stdin.fileno(), 65536):
                pieces.put(piece)
        except OSError:
            pass  # a standard input that can't be read has nothing to say
        pieces.put(b"")

    threading.Thread(target=read, name="stdin", daemon=True).start()
    try:
        whole = [pieces.get(timeout=silence_s)]
    except queue.Empty:
        return None
    while whole[-1]:
        whole.append(pieces.get())
    return b"".join(whole).decode("utf-8", "replace")
