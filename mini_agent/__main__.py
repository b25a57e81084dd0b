"""The way in, for `python -m mini_agent` and for the console script.

Before anything else is imported, two things are set right. Python puts the working directory on the import path, and a
coding agent is started inside other people's repositories: a planted `httpx.py` must not run. And until there is a handler,
Ctrl+C ends the process without a traceback.
"""

import gc
import os
import signal
import sys


def main() -> None:
    """Runs the program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        here = os.getcwd()  # noqa: PTH109  pathlib is not imported before the path is clean
    except OSError:
        here = ""
    sys.path[:] = [entry for entry in sys.path if entry and os.path.abspath(entry) != here]  # noqa: PTH100

    gc.disable()  # what is imported stays: looking for garbage in it meanwhile costs a tenth of the start
    from mini_agent.cli import main as run  # noqa: PLC0415  not before the path is clean

    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
