"""run_bash with real processes: live, bounded, and ended for certain (product T4)."""

import asyncio
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mini_agent.workspace import spill as spilling
from mini_agent.workspace.files import Files
from mini_agent.workspace.spill import LIMIT, Spill
from mini_agent_tools import process
from mini_agent_tools.output import HEAD, TAIL

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX shells and signals")

TICKING = "while :; do echo x >> tick; sleep 0.01; done"


async def until(condition: Callable[[], bool], within_s: float = 5.0) -> None:
    """Waits for what has to come true, no longer than it takes."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.005)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def is_running(pid: int) -> bool:
    """Whether a process lives. One that is dead and that nobody has reaped does not, as far as that can be seen."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # no /proc here, or it went this moment
        return not Path("/proc/self").exists()


@pytest.mark.parametrize(
    ("command", "content", "is_error"),
    [
        ("echo one; echo two >&2", "one\ntwo\n[exit code 0]", False),
        ("printf 'no end'", "no end\n[exit code 0]", False),
        ("true", "[no output; exit code 0]", False),
        ("echo bad; exit 3", "bad\n[exit code 3]", True),
        ("no_such_command_here 2>/dev/null", "[no output; exit code 127]", True),
        ("kill -KILL $$", "[no output; ended by signal SIGKILL]", True),
        ("echo 'caf\xe9'", "caf\xe9\n[exit code 0]", False),
        ("", "[no output; exit code 0]", False),
    ],
)
async def test_output_and_exit_code_are_told(bench, command: str, content: str, is_error: bool) -> None:
    result = await bench.call("run_bash", command=command)
    assert (result.content, result.is_error) == (content, is_error)


async def test_g14_what_is_not_text_is_made_text(bench) -> None:
    command = r"printf '\360\050\000ok\n'; printf '10%%\r20%%\r100%%\n'; printf '\033[31mred\033[0m\n'"
    result = await bench.call("run_bash", command=command)
    assert result.content == "\ufffd(ok\n100%\nred\n[exit code 0]"
    assert "".join(bench.live) == "\ufffd(ok\n10%\n20%\n100%\nred\n"


async def test_the_shell_is_bash_where_there_is_one(bench) -> None:
    wanted = "bash" if shutil.which("bash") else "sh"
    assert f"{wanted}\n" in (await bench.call("run_bash", command='echo "$0"')).content


async def test_without_bash_it_is_sh(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    assert (await bench.call("run_bash", command='echo "$0"')).content == "/bin/sh\n[exit code 0]"


async def test_a_bash_in_the_working_directory_is_not_run(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.file("bash", b"#!/bin/sh\necho planted\n").chmod(0o755)
    monkeypatch.chdir(bench.root)
    bench.context.environment["PATH"] = f".:{os.environ['PATH']}"
    assert "planted" not in (await bench.call("run_bash", command="echo fine")).content


async def test_there_is_no_input_and_no_terminal(bench) -> None:
    command = "cat; test -t 0 || test -t 1 || test -t 2 || echo none; (echo x > /dev/tty) 2>/dev/null || echo no tty"
    assert (await bench.call("run_bash", command=command)).content == "none\nno tty\n[exit code 0]"


async def test_t7_the_environment_is_the_given_one(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    content = (await bench.call("run_bash", command="env")).content
    assert "GREETING=hello" in content
    assert "secret" not in content


async def test_g20_every_command_starts_in_the_workspace(bench) -> None:
    (bench.root / "sub").mkdir()
    root = bench.root.resolve()
    assert (await bench.call("run_bash", command="cd sub && pwd -P")).content == f"{root}/sub\n[exit code 0]"
    assert (await bench.call("run_bash", command="pwd -P")).content == f"{root}\n[exit code 0]"


async def test_g20_a_folder_that_is_gone_is_said_to_be(bench) -> None:
    await bench.call("run_bash", command='rm -rf "$PWD"')
    assert "is gone" in await bench.refusal("run_bash", command="ls")


@pytest.mark.parametrize("command", ["a\0b", "x" * 3_000_000])
async def test_what_can_not_be_started_is_refused_in_words(bench, command: str) -> None:
    assert "could not be started" in await bench.refusal("run_bash", command=command)


async def test_b25_half_a_character_does_not_stop_a_command(bench) -> None:
    assert (await bench.call("run_bash", command="echo '\ud83d\ude00 \ud800'")).content.startswith(
        "\U0001f600 \ufffd\n"
    )


def test_the_question_shows_the_whole_command(bench) -> None:
    preview = bench.preview("run_bash", command="ls\nrm -rf x\n")
    assert preview.subject == "ls\nrm -rf x\n"
    assert preview.summary == r"run ls\nrm -rf x"
    assert preview.targets == ()


@pytest.mark.parametrize("given", [0, -1, 4000, "soon", "nan"])
async def test_a_time_that_is_none_is_refused(bench, given: object) -> None:
    assert "timeout_s" in await bench.refusal("run_bash", command="true", timeout_s=given)


async def test_output_is_live(bench) -> None:
    running = asyncio.create_task(
        bench.call("run_bash", command="echo first; until test -e go; do sleep 0.01; done; echo last")
    )
    await until(lambda: bool(bench.live))
    assert bench.live == ["first\n"]
    assert not running.done()
    bench.file("go", b"")
    assert (await running).content == "first\nlast\n[exit code 0]"
    assert bench.live == ["first\n", "last\n"]


async def test_live_output_never_ends_within_a_character(bench) -> None:
    command = r"printf '\342'; until test -e go; do sleep 0.01; done; printf '\202\254 done'"
    running = asyncio.create_task(bench.call("run_bash", command=command))
    bench.file("go", b"")
    await running
    assert "".join(bench.live) == "\u20ac done"


async def test_a_slow_screen_slows_the_command_down_and_loses_nothing_at_its_end(bench) -> None:
    let_go = asyncio.Event()

    async def output(text: str) -> None:
        bench.live.append(text)
        await let_go.wait()

    bench.context = type(bench.context)(bench.context.files, output, bench.context.environment)
    command = "echo go; head -c 3000000 /dev/zero | tr '\\0' x; echo; touch written; echo end"
    running = asyncio.create_task(bench.call("run_bash", command=command))
    await until(lambda: bool(bench.live))
    await asyncio.sleep(0.05)
    assert not (bench.root / "written").exists()
    let_go.set()
    content = (await running).content
    assert content.startswith("go\nxxx")
    assert content.endswith("xxx\nend\n[exit code 0]")


# What is left behind.


@pytest.mark.parametrize(
    "command", ["sleep 5 & echo $! > pid; echo done", "(setsid sleep 5 & echo $! > pid); echo done"]
)
async def test_g10_a_background_process_does_not_hang_it(bench, command: str) -> None:
    began = time.monotonic()
    result = await bench.call("run_bash", command=command)
    assert time.monotonic() - began < 3
    assert result.content.startswith("done\n[exit code 0; a background process still runs")
    assert not result.is_error
    pid = int((bench.root / "pid").read_text())
    assert is_running(pid)
    os.kill(pid, signal.SIGKILL)


async def test_g10_a_background_process_that_prints_without_end_does_not_hang_it(bench) -> None:
    result = await bench.call("run_bash", command="yes & echo $! > pid; echo done")
    assert "a background process still runs" in result.content
    pid = int((bench.root / "pid").read_text())
    await until(lambda: not is_running(pid))  # nobody reads its pipe any more


async def test_g10_a_background_process_with_its_output_elsewhere_is_nobodys_business(bench) -> None:
    result = await bench.call("run_bash", command="sleep 5 > log 2>&1 & echo $! > pid; echo done")
    assert result.content == "done\n[exit code 0]"
    os.kill(int((bench.root / "pid").read_text()), signal.SIGKILL)


async def test_what_comes_a_little_after_the_end_of_the_shell_is_read(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE_S", 30)  # it is over as soon as the pipe is closed
    result = await bench.call(
        "run_bash", command="(until test -e go; do sleep 0.01; done; echo late) & touch go"
    )
    assert result.content == "late\n[exit code 0]"


@pytest.mark.parametrize(
    "command",
    [
        TICKING,
        f"sh -c 'trap \"\" TERM; ({TICKING})'",
        f"trap '' TERM HUP INT; ({TICKING}) & wait",
        f"({TICKING}) > /dev/null 2>&1 & ({TICKING}) | cat & wait",
        f"(trap '' TERM; {TICKING}) > /dev/null 2>&1 & wait",
        f"sh -c 'sh -c \"{TICKING}; true\"; true'",
    ],
)
@pytest.mark.parametrize("how", ["cancel", "deadline"])
async def test_g11_the_whole_group_is_ended(bench, command: str, how: str) -> None:
    tick = bench.root / "tick"
    if how == "cancel":
        running = asyncio.create_task(bench.call("run_bash", command=command))
        await until(lambda: size(tick) > 2)
        began = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - began < 1
    else:
        result = await bench.call("run_bash", command=command, timeout_s=0.2)
        assert result.is_error
        assert "stopped after 0.2 s" in result.content
    before = size(tick)
    await asyncio.sleep(0.1)  # ten ticks
    assert size(tick) == before


async def test_g11_a_cancel_reaps_the_shell_before_it_passes_on(bench) -> None:
    running = asyncio.create_task(bench.call("run_bash", command="echo $$; sleep 60"))
    await until(lambda: bool(bench.live))
    pid = int(bench.live[0])
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_g11_a_cancel_ends_what_the_shell_left_in_the_background(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE_S", 60)
    running = asyncio.create_task(bench.call("run_bash", command=f"({TICKING}) & echo $$"))
    await until(
        lambda: size(bench.root / "tick") > 2 and bool(bench.live) and not is_running(int(bench.live[0]))
    )
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    before = size(bench.root / "tick")
    await asyncio.sleep(0.1)
    assert size(bench.root / "tick") == before


async def test_g11_a_cancel_at_any_moment_leaves_nothing(bench) -> None:
    tasks = asyncio.all_tasks()
    for steps in range(25):
        running = asyncio.create_task(bench.call("run_bash", command=f"echo $$ >> pids; {TICKING}"))
        for _ in range(steps):
            await asyncio.sleep(0)
        began = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert time.monotonic() - began < 1
    pids = bench.root / "pids"
    assert not any(is_running(int(pid)) for pid in (pids.read_text().split() if pids.exists() else []))
    before = size(bench.root / "tick")
    await asyncio.sleep(0.1)
    assert size(bench.root / "tick") == before
    assert asyncio.all_tasks() == tasks


async def test_a_screen_that_fails_ends_the_command(bench) -> None:
    async def output(text: str) -> None:
        raise BrokenPipeError(text)

    bench.context = type(bench.context)(bench.context.files, output, bench.context.environment)
    with pytest.raises(BrokenPipeError):
        await bench.call("run_bash", command=f"echo x; {TICKING}")
    before = size(bench.root / "tick")
    await asyncio.sleep(0.1)
    assert size(bench.root / "tick") == before


async def test_a_command_that_ends_when_asked_is_not_killed(bench) -> None:
    command = "trap 'echo cleaned up; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    result = await bench.call("run_bash", command=command, timeout_s=0.5)
    assert result.content.startswith("ready\n")
    assert result.content.endswith(
        "cleaned up\n[stopped after 0.5 s, with all it had started: it took too long]"
    )
    assert result.is_error


@pytest.mark.parametrize("command", ["yes", "head -c 1000000000 /dev/zero | tr '\\0' x"])
async def test_g13_output_without_bound_is_bounded(bench, command: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await bench.call("run_bash", command=command, timeout_s=0.5)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * (1 if sys.platform == "darwin" else 1024) < 50_000_000
    assert len(result.content) < HEAD + TAIL + 200
    assert "bytes left out here]" in result.content
    assert "stopped after 0.5 s" in result.content
    assert sum(map(len, bench.live)) < 100_000


async def test_g13_the_loop_stays_free_while_output_floods_in(bench) -> None:
    running = asyncio.create_task(bench.call("run_bash", command="yes", timeout_s=0.3))
    turns = 0
    while not running.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 20


# What does not fit is kept aside (product A7).


@pytest.fixture
def spill(bench) -> Spill:
    """A place for it, which the bench's tools use and may read."""
    kept = Spill(bench.root.parent / "spill", "run", now=lambda: 0.0)
    bench.context = replace(bench.context, files=Files(bench.root, readable=kept.folder), spill=kept)
    return kept


def kept_files(spill: Spill) -> list[Path]:
    return sorted(spill.folder.parent.glob("*/*"))


def path_in(content: str) -> str:
    return content.partition(" in ")[2].partition(", which read_file shows]\n")[0]


async def test_a7_the_whole_output_is_in_a_file_that_read_file_shows(bench, spill: Spill) -> None:
    result = await bench.call("run_bash", command="seq 1 20000; echo error >&2; exit 3")
    whole = "".join(f"{number}\n" for number in range(1, 20001)) + "error\n"
    assert result.content.startswith("1\n2\n")
    assert result.content.endswith("20000\nerror\n[exit code 3]")
    assert len(result.content.encode()) < LIMIT
    assert [file.read_text() for file in kept_files(spill)] == [whole]
    path = path_in(result.content)
    assert bench.context.files.workspace.may_read(bench.preview("read_file", path=path).targets[0])
    middle = await bench.call("read_file", path=path, offset=10_000, limit=2)
    assert middle.content.startswith("10000\n10001\n[")


async def test_a7_the_file_grows_while_the_command_runs(bench, spill: Spill) -> None:
    command = "seq 1 20000; until test -e go; do sleep 0.01; done; echo end"
    running = asyncio.create_task(bench.call("run_bash", command=command))
    await until(lambda: sum(map(size, kept_files(spill))) > HEAD + TAIL)
    assert not running.done()
    bench.file("go", b"")
    content = (await running).content
    assert kept_files(spill)[0].read_text().endswith("20000\nend\n")
    assert str(kept_files(spill)[0]) == path_in(content)


@pytest.mark.parametrize("command", ["true", "seq 1 1000", f"head -c {HEAD + TAIL} /dev/zero | tr '\\0' x"])
async def test_a7_where_nothing_is_left_out_nothing_is_kept(bench, spill: Spill, command: str) -> None:
    assert "left out" not in (await bench.call("run_bash", command=command)).content
    assert kept_files(spill) == []


async def test_a7_a_cancelled_command_leaves_no_file(bench, spill: Spill) -> None:
    running = asyncio.create_task(bench.call("run_bash", command=f"seq 1 20000; {TICKING}"))
    await until(lambda: bool(kept_files(spill)))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert kept_files(spill) == []


async def test_a7_a_command_that_took_too_long_keeps_what_it_printed(bench, spill: Spill) -> None:
    result = await bench.call("run_bash", command=f"seq 1 20000; {TICKING}", timeout_s=0.5)
    assert result.content.endswith("it took too long]")
    assert kept_files(spill)[0].read_text().endswith("\n20000\n")


async def test_g14_what_is_kept_is_text_that_can_be_read(bench, spill: Spill) -> None:
    command = r"printf '\033[31m\000red\033[0m\n10%%\r100%%\n'; seq 1 20000"
    content = (await bench.call("run_bash", command=command)).content
    shown = await bench.call("read_file", path=path_in(content), limit=3)
    assert shown.content.startswith("red\n100%\n1\n")


async def test_g13_an_endless_output_is_kept_up_to_a_cap(
    bench, spill: Spill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spilling, "MOST_KEPT", 100_000)
    result = await bench.call("run_bash", command="yes", timeout_s=0.3)
    assert "; the first 100,000 bytes are in " in result.content
    assert kept_files(spill)[0].read_text() == "y\n" * 50_000


async def test_a7_what_can_not_be_kept_does_not_end_the_command(bench, spill: Spill) -> None:
    spill.folder.parent.write_text("a file")
    result = await bench.call("run_bash", command="seq 1 20000")
    assert "bytes left out here; the whole could not be kept: " in result.content
    assert result.content.endswith("20000\n[exit code 0]")
