"""Stands between a pseudo-terminal and the program, as a shell does: it leads the session and waits for the program.

    guardian.py STATUS_FD ORDERS_FD MARK PROGRAM ARGUMENT...

The program can't lead the session itself: when a leader exits, the kernel resets the terminal, so that nobody could see
in which state the program left it; and a leader is never stopped by Ctrl+Z. Standard input, output and error are the
terminal. STATUS_FD gets a line for each change: `started PID`, `stopped`, `exited CODE` (a signal as its negative).
MARK is printed after the program's last output, in order with it. A line on ORDERS_FD puts a stopped program back into
the foreground; its end lets the guardian leave. Only standard library: it is run without site-packages.
"""

import contextlib
import fcntl
import os
import signal
import sys
import termios

HANDLED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def main() -> None:
    status, orders = int(sys.argv[1]), int(sys.argv[2])
    mark, command = sys.argv[3], sys.argv[4:]
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in HANDLED:
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for number in HANDLED:
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    # A shell passes a hang-up on to its job.
    signal.signal(signal.SIGHUP, lambda *_: hang_up(child))
    tell(status, f"started {child}")
    while True:
        _, state = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(state):
            break
        os.tcsetpgrp(0, os.getpgrp())
        tell(status, "stopped")
        os.read(orders, 1)
        os.tcsetpgrp(0, child)
        os.killpg(child, signal.SIGCONT)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # the terminal may have gone
        os.write(1, mark.encode())
    tell(status, f"exited {os.waitstatus_to_exitcode(state)}")
    os.read(orders, 1)


def hang_up(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGHUP)


def tell(status: int, what: str) -> None:
    os.write(status, f"{what}\n".encode())


main()
