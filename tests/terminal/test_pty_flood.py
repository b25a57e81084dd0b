"""An answer that comes as fast as the machine can (F19): frames and bytes are counted, and time only bounds the frames."""

import re
import time

from chat import text, whole

from mini_agent.lab.server import LabThread

PIECES = 6_000
SECTION = """\
## Part {n}

Some **bold** words of part {n}, with `code` and [a link](http://example.org/{n}) in them, and so on to the end.

- one of {n}
- two of {n}

```python
def part{n}(x):
    return x + {n}
```

"""


def test_f19_30_kb_in_6000_pieces_cost_few_frames_and_few_bytes(start):
    said = "".join(SECTION.format(n=number) for number in range(140))
    said += "the end"
    size = -(-len(said) // PIECES)
    with LabThread([whole(*(text(said[at : at + size]) for at in range(0, len(said), size)))]) as lab:
        terminal = start(lab=lab)
        terminal.wait_for_prompt()
        before, began = len(terminal.output), time.monotonic()
        terminal.enter("hello")
        terminal.wait_for("the end first token", 30)
        spent_s = time.monotonic() - began
        output = bytes(terminal.output[before:])
        terminal.wait_for_prompt()
    frames = output.count(b"\x1b[?2026h")
    assert frames <= 20 * spent_s + 25 + 5  # 20 a second, but 100 in the first quarter of one
    assert len(output) <= 4 * len(said)
    assert re.findall(r"^Part (\d+)$", terminal.text, re.MULTILINE) == [f"{number}" for number in range(140)]
    assert re.findall(r"return x \+ (\d+)", terminal.text) == [f"{number}" for number in range(140)]
