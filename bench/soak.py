"""Turns with tools against a provider that fails in every way there is: what came, how often, and how it ended.

    python bench/soak.py [TURNS [SEED]]      # 1,000 turns; another seed each time

The code is that of tests/test_soak.py, which takes fewer turns. It stops at the first thing that should not be, and says
which seed brings it back; at the end, every kind of fault must have come and have done what it is for.
"""

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from soak_kinds import BY_NAME
from soak_user import INTERRUPTIONS
from soak_witness import Tally
from soaking import missing, soak

TURNS = 1000
TOTALS = ("turns", "requests", "Retrying", "tools run", "Compacted", "resumed", "cleared")


def table(tally: Tally) -> None:
    """One line for each kind: how its attempts ended, and the turns in which it came."""
    print(f"{'what happened':30} {'times':>5}  attempts ended; their turns ended")
    for name in (*BY_NAME, *INTERRUPTIONS):
        attempts, turns = tally.attempts[name], tally.turns[name]
        times = attempts.total() or turns.total()
        print(f"{name:30} {times:5}  {_listed(attempts)}; {_listed(turns)}")
    print(", ".join(f"{tally.seen[name]} {name}" for name in TOTALS))
    ends = Counter(
        {name.removeprefix("turns "): n for name, n in tally.seen.items() if name.startswith("turns ")}
    )
    print(f"turns ended: {_listed(ends)}, and {tally.turns['close the stream'].total()} streams were closed")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "-"


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    print(f"{turns} turns, seed {seed}", flush=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tally = soak(turns, seed, Path(folder))
    table(tally)
    print(f"{time.perf_counter() - began:.0f} s")
    if lacking := missing(tally):
        sys.exit(f"these never came, or never did what they are for: {', '.join(lacking)}")


if __name__ == "__main__":
    main()
