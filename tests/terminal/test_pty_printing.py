"""What others print while an answer streams (F02): a library's warning, a logger, a thread, styles and all."""

import re
import sys

from chat import text, whole

from mini_agent.lab.replies import Pause
from mini_agent.lab.server import LabThread

# Prints in each way once, when the answer's third piece is shown.
PRINTING = r"""
import logging, sys, threading, warnings
from mini_agent.core.events import ChannelToken
from mini_agent.ui.view import View

feed, pieces = View.feed, []

def printing(view, event):
    feed(view, event)
    if isinstance(event, ChannelToken):
        pieces.append(event)
        if len(pieces) == 3:
            print("\x1b[31mprinted red\x1b[0m")
            sys.stderr.write("\x1b[2Jwritten in \x1b]0;title\x07two ")
            sys.stderr.write("parts\n")
            logging.getLogger("some.package").warning("logged")
            warnings.warn("warned of", stacklevel=1)
            thread = threading.Thread(target=print, args=("printed in a thread",))
            thread.start()
            thread.join()
            print("without an end", end="")

View.feed = printing
from mini_agent.cli import main
main()
"""
SAID = ["printed red", "written in two parts", "logged", "warned of", "printed in a thread", "without an end"]
LINES = [f"line {number} of the answer" for number in range(40)]


def test_f02_what_others_print_is_a_notice_each_and_no_style_or_code_of_it_is_seen(start):
    pieces = [part for line in LINES for part in (text(f"{line}\n\n"), Pause(0.005))]
    with LabThread([whole(*pieces), whole(text("fine"))]) as lab:
        terminal = start(lab=lab, command=[sys.executable, "-c", PRINTING], rows=12)
        terminal.wait_for_prompt()
        terminal.enter("hello")
        terminal.wait_for("first token")
        terminal.wait_for_prompt()
        assert terminal.cell("without an end").fg == "brown"  # what pyte calls the terminal's yellow
        assert [line for line in terminal.everything if line in LINES] == LINES, terminal.dump()
        for said in SAID:
            assert terminal.flat.count(said) == 1, terminal.dump()
        assert not re.search(r"\[\d*[mJ]|\?\[|title", terminal.text), terminal.dump()
        assert b"\x1b[31mprinted" not in terminal.output
        assert b"\x1b[2J" not in terminal.output
        assert "streaming" not in terminal.text
        terminal.enter("and now")
        terminal.wait_for("fine")
        terminal.wait_for_prompt()
