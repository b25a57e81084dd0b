"""The real program killed with SIGKILL at random moments, each time resumed; figures of when.

    python bench/kills.py [KILLS [SEED]]      # 50 kills; another seed each time

The code is that of tests/test_killed.py, which kills less often. It stops at the first thing that should not be: a session
that does not go on, a request that breaks a rule, a tool that ran twice, something that came out and is not in the journal.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kill_moments import MOMENTS
from killing import kills

KILLS = 50


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    print(f"{count} kills, seed {seed}", flush=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = kills(count, seed, Path(folder))
    for moment in MOMENTS:
        print(f"{moment.name:32} {done[moment.name]:3}")
    print(f"{done.total()} kills, each resumed; {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
