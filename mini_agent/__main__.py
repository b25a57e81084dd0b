"""`python -m mini_agent`: takes the working directory off the import path first.

Python puts it there, and a coding agent is started inside other people's repositories: a planted `httpx.py` must not run.
"""

import os
import sys

if not sys.flags.safe_path:
    here = os.getcwd()  # noqa: PTH109  pathlib is not imported before the path is clean
    sys.path[:] = [entry for entry in sys.path if entry and os.path.abspath(entry) != here]  # noqa: PTH100

from mini_agent.cli import main

if __name__ == "__main__":
    main()
