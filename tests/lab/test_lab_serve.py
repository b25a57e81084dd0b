"""`mini-agent lab serve` as a user meets it, and what docs/lab.md says of it."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_agent import cli
from mini_agent.core.errors import ConfigError
from mini_agent.lab.fault_words import forms
from mini_agent.lab.serve import printable, serve

sys.path.insert(0, str(Path(__file__).parents[1]))
from programs import CONSOLE_SCRIPT, QUICK, run

DOC = (Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8417"


@contextmanager
def serving(*arguments: str, cwd: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of a server on a port of its own, and its process, whose standard output goes on with its log."""
    command = [*CONSOLE_SCRIPT, "lab", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            found = re.fullmatch(
                r"lab server at (http://127\.0\.0\.1:\d+)/v1 \(.*\); Ctrl\+C ends it\n", first
            )
            assert found is not None, first
            yield found[1], process
        finally:
            process.kill()


@pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")
def test_it_serves_and_logs_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"from a file")
    with serving("--fault", "status=503 then ok", "--fault", "header=x-a:1", cwd=tmp_path) as (
        address,
        process,
    ):
        with httpx.Client(trust_env=False) as client:
            busy = client.post(f"{address}/v1/messages?key=secret", json={"model": "m"})
            assert (busy.status_code, busy.headers["x-a"]) == (503, "1")
            file = client.post(
                f"{address}/v1/responses?fault=bytes=a.txt",
                json={"model": "m", "input": "hi", "stream": True},
            )
            assert file.text == "from a file"
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    assert lines == [
        "1: POST /v1/messages -> 503 status=503 header=x-a:1\n",
        "1: broken rule: max_tokens is missing\n",
        "1: broken rule: messages is no list, or an empty one\n",
        "2: POST /v1/responses stream -> 200 header=x-a:1 bytes=a.txt\n",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--fault", "statsu=503"], "did you mean 'status'?"),
        (["serve", "--fault", "cut@x"], "cut[=BYTES][@EVENT]"),
        (["serve", "--fault", "bytes=nowhere.txt"], "nowhere.txt"),
        (["serve", "--fault"], "--fault"),
        (["serve", "--port", "70000"], "--port"),
        (["serve", "--replay", "x"], "--replay"),
        ([], "Missing command"),
        (["frobnicate"], "frobnicate"),
        (["--port", "0"], "--port"),
    ],
)
def test_a_wrong_command_line_is_one_plain_line_and_2(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["mini-agent", "lab", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out, len(told.err.splitlines())) == (2, "", 1)
    assert told.err.startswith("mini-agent: ")
    assert words in told.err


def test_the_word_is_a_prompt_where_it_is_no_command(tmp_path: Path) -> None:
    for arguments in (["--", "lab"], ["-p", "lab"]):
        result = run(*arguments, cwd=tmp_path)
        assert result.returncode == 0
        assert "demo model" in result.stdout
    assert "lab serve" in run("--help", cwd=tmp_path).stdout


async def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} can't be used: .*--port 0"):
            await serve(port, [], print, files=tmp_path)


async def test_cancelled_it_lets_go_of_the_port(tmp_path: Path) -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(serve(0, [], lines.put_nowait, files=tmp_path))
    found = re.search(r":(\d+)/", await lines.get())
    assert found is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(OSError):  # noqa: PT011  refused, in the words of the system
        await asyncio.open_connection("127.0.0.1", int(found[1]))


@given(st.text())
def test_no_line_of_the_log_can_drive_a_terminal(text: str) -> None:
    assert re.fullmatch(r"[ -~]*", printable(text))


def test_plain_words_stay_as_they_are() -> None:
    assert printable("1: POST /v1/messages -> 200 'cut@5' ~") == "1: POST /v1/messages -> 200 'cut@5' ~"
    assert printable("\x1b[2J\n\u00e4") == r"\x1b[2J\n\xe4"


def test_the_document_has_every_word_in_the_order_in_which_they_act() -> None:
    table = DOC.partition("| word |")[2].partition("\n\n")[0]
    assert [word.replace("\\|", "|") for word in re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)] == forms()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOC, re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with a text that its output has."""
    lines = block.splitlines()
    return [
        (line, following.removeprefix("# -> ") if following.startswith("#") else "")
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if not line.startswith("#")
    ]


@pytest.mark.skipif(os.name == "nt" or not shutil.which("curl"), reason="the commands are for sh, with curl")
def test_the_commands_of_the_document_do_what_it_says(tmp_path: Path) -> None:
    found = [command for block in blocks("sh") for command in commands(block)]
    assert len(found) >= 10
    server = "mini-agent lab serve"
    places = [place for place, (line, _) in enumerate(found) if line.startswith(server)]
    assert places[0] == 0
    for place, end in zip(places, [*places[1:], len(found)], strict=True):
        options = re.findall(r"'([^']*)'|(\S+)", found[place][0].removeprefix(server))
        with serving(*(quoted or plain for quoted, plain in options), cwd=tmp_path) as (address, _):
            for line, words in found[place + 1 : end]:
                assert ADDRESS in line
                program = f"{CONSOLE_SCRIPT[0]} " if line.startswith("mini-agent ") else ""
                told = program + line.replace(ADDRESS, address).removeprefix("mini-agent " if program else "")
                result = subprocess.run(
                    told,
                    shell=True,
                    cwd=tmp_path,
                    capture_output=True,
                    text=True,
                    env={**os.environ, **QUICK},
                    timeout=30,
                    check=False,
                )
                assert words
                assert words in result.stdout + result.stderr, told


def test_the_python_of_the_document_runs(tmp_path: Path) -> None:
    (code,) = blocks("python")
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=30, check=False
    )
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/v1\n0 \[\] \[\]\n", result.stdout), result.stderr
