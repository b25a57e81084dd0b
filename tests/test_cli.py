"""The command line as a user and a script meet it: real processes, exit codes, what is on which stream."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from programs import CONSOLE_SCRIPT, MODULE, QUICK, run

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.lab.replies import Cut, Hold, error, event_stream
from mini_agent.lab.server import LabThread

FAILS = {"DEMO_FAIL_RATE": "1", "MINI_AGENT_MAX_RETRIES": "2"}
ONE = b'data: {"choices":[{"index":0,"delta":{"content":"one"}}]}\n\n'


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("program", [CONSOLE_SCRIPT, MODULE], ids=["script", "module"])
def test_version_and_help(tmp_path, program):
    assert run("--version", cwd=tmp_path, program=program).stdout.startswith("mini-agent 0.")
    shown = run("--help", cwd=tmp_path, program=program)
    assert shown.returncode == 0
    for flag in ("--model", "--base-url", "--no-stream", "--mode", "-p"):
        assert flag in shown.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--frobnicate"],
        ["--model"],
        ["--mode", "yolo"],
        ["--mode", "plan", "-p", "x"],
        ["--max-steps", "many"],
        ["--max-steps", "0", "-p", "x"],
        ["two", "words"],
        ["--profile", "nobody", "-p", "x"],
        ["--cwd", "nowhere", "-p", "x"],
        ["--image", "a.png", "-p", "x"],
        ["--effort", "extreme", "-p", "x"],
        ["--api", "soap", "-p", "x"],
        ["-c"],
        ["-p", ""],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_a_wrong_command_line_is_one_plain_line_and_2(tmp_path, arguments):
    result = run(*arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("mini-agent: ")
    assert len(result.stderr.splitlines()) == 1


def test_p_writes_the_answer_and_nothing_else(tmp_path):
    result = run("-p", "hello", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "**" in result.stdout
    assert "\x1b" not in result.stdout
    assert result.stdout.endswith("\n")


def test_a_bare_p_takes_the_prompt_from_standard_input(tmp_path):
    (tmp_path / "a.txt").write_text("alpha\n")
    for arguments in (["-p"], ["-p", "-"], ["-p", "--max-steps", "5"], []):
        result = run(*arguments, cwd=tmp_path, stdin="read a.txt")
        assert result.returncode == 0
        assert "alpha" in result.stdout


def test_what_is_piped_in_beside_a_prompt_is_appended(tmp_path):
    events = lines(
        run("-p", "explain", "--output-format", "stream-json", cwd=tmp_path, stdin="piped words").stdout
    )
    assert (
        next(event for event in events if event["type"] == "turn_started")["prompt"]
        == "explain\n\npiped words"
    )


def test_a_pipe_that_stays_silent_is_left_out_and_that_is_said(tmp_path):
    process = subprocess.Popen(
        [*CONSOLE_SCRIPT, "-p", "hello"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **QUICK},
    )
    try:
        process.wait(timeout=30)
        assert process.returncode == 0
        assert "said nothing for 3 s" in process.stderr.read()
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def test_stream_json_is_one_event_a_line_with_the_documented_fields(tmp_path):
    (tmp_path / "a.txt").write_text("alpha\n")
    result = run("-p", "read a.txt", "--output-format", "stream-json", cwd=tmp_path)
    events = lines(result.stdout)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert abs(events[0]["t"] - time.time()) < 60
    kinds = [event["type"] for event in events]
    assert kinds[0] == "turn_started"
    assert kinds[-1] == "turn_finished"
    assert {
        "stream_started",
        "first_token",
        "channel_token",
        "tool_call_delta",
        "completed",
        "attempt_ended",
    } <= set(kinds)
    completed = next(event for event in events if event["type"] == "completed")["response"]
    assert set(completed) == {
        "id",
        "model",
        "text",
        "reasoning",
        "tool_calls",
        "stop_reason",
        "raw_stop_reason",
        "usage",
    }
    assert completed["tool_calls"][0] | {"id": ""} == {
        "id": "",
        "name": "read_file",
        "arguments": {"path": "a.txt"},
        "invalid": None,
    }
    assert set(completed["usage"]) == {
        "input_tokens",
        "output_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
    }
    finished = next(event for event in events if event["type"] == "tool_finished")
    assert set(finished) == {"type", "seq", "t", "call_id", "name", "is_error", "content", "elapsed_s"}
    tokens = [event for event in events if event["type"] == "channel_token"]
    assert all("n" in token and "n_first" not in token and token["request_id"] for token in tokens)
    assert set(events[-1]) == {"type", "seq", "t", "reason", "text", "usage", "cost_usd"}


def test_json_is_one_object_also_on_failure(tmp_path):
    fine = json.loads(run("-p", "hello", "--output-format", "json", cwd=tmp_path).stdout)
    assert set(fine) == {"reason", "text", "stop_reason", "usage", "cost_usd", "steps", "error"}
    assert (fine["reason"], fine["steps"], fine["error"]) == ("done", 1, None)
    result = run("-p", "hello", "--output-format", "json", cwd=tmp_path, env=FAILS)
    failed = json.loads(result.stdout)
    assert (result.returncode, failed["reason"], failed["text"]) == (75, "failed", "")
    assert failed["error"]["kind"] in ("overloaded", "rate_limit")
    assert failed["error"]["retryable"]


def test_75_a_transient_failure_after_the_last_retry_says_each_retry_on_stderr(tmp_path):
    result = run("-p", "hello", cwd=tmp_path, env=FAILS)
    assert (result.returncode, result.stdout) == (75, "")
    said = result.stderr.splitlines()
    assert said[0].startswith("mini-agent: retry 1/2 in ")
    assert said[1].startswith("mini-agent: retry 2/2 in ")
    assert "gave up after 2 retries" in said[2]


def test_75_an_empty_answer_is_transient(tmp_path):
    assert run("-p", "empty", cwd=tmp_path).returncode == 75


def test_half_an_answer_is_never_written_as_an_answer(tmp_path):
    result = run("-p", "hello", cwd=tmp_path, env={"DEMO_CUT_RATE": "1", "MINI_AGENT_MAX_RETRIES": "1"})
    assert (result.returncode, result.stdout) == (75, "")


def test_4_a_denied_call_that_the_model_could_not_go_on_without(tmp_path):
    result = run("-p", "write new.txt", cwd=tmp_path)
    assert result.returncode == 4
    assert "denied" in result.stderr
    assert result.stdout
    assert not (tmp_path / "new.txt").exists()


def test_0_auto_mode_changes_files_inside_and_denies_commands(tmp_path):
    assert run("-p", "write new.txt", "--mode", "auto", cwd=tmp_path).returncode == 0
    assert (tmp_path / "new.txt").exists()
    assert run("-p", "run echo hi", "--mode", "auto", cwd=tmp_path).returncode == 4


def test_3_a_cap_on_steps(tmp_path):
    (tmp_path / "a.txt").write_text("alpha\n")
    result = run("-p", "read a.txt", "--max-steps", "1", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (3, "")
    assert "per turn: 1" in result.stderr


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (error(400, "bad"), 1),
        (error(401, "who are you"), 1),
        (error(402, "pay"), 1),
        (event_stream(ONE, Cut()), 75),
    ],
    ids=["400", "401", "402", "cut"],
)
def test_1_and_75_over_http(tmp_path, reply, code):
    with LabThread(lambda request: reply) as lab:
        result = run(
            "-p",
            "hi",
            "--base-url",
            lab.base_url,
            "--model",
            "m",
            cwd=tmp_path,
            env={"MINI_AGENT_MAX_RETRIES": "1"},
        )
        assert len(lab.requests) == (1 if code == 1 else 2)
    assert (result.returncode, result.stdout) == (code, "")
    assert "Traceback" not in result.stderr


def test_an_answer_over_http_carries_the_key_and_the_tools(tmp_path):
    with LabThread(lambda request: Answer((TextPiece("hello"),))) as lab:
        result = run(
            "-p",
            "hi",
            cwd=tmp_path,
            env={"MINI_AGENT_BASE_URL": lab.base_url, "MINI_AGENT_MODEL": "m", "MINI_AGENT_API_KEY": "k"},
        )
        (request,) = lab.requests
    assert (result.returncode, result.stdout) == (0, "hello\n")
    assert request.headers["authorization"] == "Bearer k"
    assert {tool["function"]["name"] for tool in request.json["tools"]} == {
        "read_file",
        "write_file",
        "edit_file",
        "list_dir",
        "run_bash",
    }
    assert request.json["messages"][0]["role"] == "system"
    assert len(request.json["messages"][0]["content"]) < 3000


@pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_130_interrupted(tmp_path, number):
    with LabThread(lambda request: event_stream(ONE, Hold())) as lab:
        process = subprocess.Popen(
            [
                *CONSOLE_SCRIPT,
                "-p",
                "hi",
                "--base-url",
                lab.base_url,
                "--model",
                "m",
                "--output-format",
                "stream-json",
            ],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **QUICK},
        )
        with process:
            for line in process.stdout:
                if '"channel_token"' in line:
                    break
            process.send_signal(number)
            rest = process.stdout.read()
            assert process.wait(timeout=20) == 130
        assert lines(rest)[-1]["reason"] == "cancelled"
        lab.until(lambda server: server.disconnects)


@pytest.mark.skipif(os.name == "nt", reason="closes a POSIX pipe")
@pytest.mark.parametrize("output", ["text", "stream-json"])
def test_u8_a_closed_pipe_ends_quietly(tmp_path, output):
    read, write = os.pipe()
    os.close(read)
    try:
        process = subprocess.run(
            [*CONSOLE_SCRIPT, "-p", "long", "--output-format", output],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **QUICK},
            timeout=50,
            check=False,
        )
    finally:
        os.close(write)
    assert process.stderr == ""


def test_f16_an_output_that_is_ascii_only_ends_no_answer(tmp_path):
    answer = Answer((TextPiece("naïve 😀 end"),))
    with LabThread(lambda request: answer) as lab:
        result = run(
            "-p",
            "hi",
            "--base-url",
            lab.base_url,
            "--model",
            "m",
            cwd=tmp_path,
            env={"PYTHONIOENCODING": "ascii"},
        )
    assert (result.returncode, result.stdout) == (0, "na?ve ? end\n")


def test_the_workspace_can_be_named(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.txt").write_text("beta\n")
    assert "beta" in run("-p", "read b.txt", "--cwd", "sub", cwd=tmp_path).stdout


def test_one_prompt_is_enough(tmp_path):
    assert run("-p", "one", "two", cwd=tmp_path).returncode == 2
    for arguments in (
        ["-p", "--", "-dashed"],
        ["-p", "- dashed words"],
        ["-p=-dashed"],
        ["--print", "x"],
        ["--", "-x"],
    ):
        assert run(*arguments, cwd=tmp_path).returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="closes POSIX descriptors")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_u8_a_closed_standard_stream_is_an_empty_one(tmp_path, closed):
    program = " ".join(CONSOLE_SCRIPT)
    env = {**os.environ, **QUICK, **FAILS}
    result = subprocess.run(
        f"{program} -p hello --output-format stream-json {closed}",
        shell=True,
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert result.returncode == 75
    assert "Traceback" not in result.stderr
    assert all(line.startswith("{") for line in result.stdout.splitlines())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("arguments", [["-p", "hello"], ["--help"]])
def test_u8_an_output_that_is_full_is_one_line(tmp_path, arguments):
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*CONSOLE_SCRIPT, *arguments],
            cwd=tmp_path,
            env={**os.environ, **QUICK},
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
            check=False,
        )
    assert result.returncode in (1, 2)
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="a folder in use can't be removed there")
@pytest.mark.parametrize("program", [CONSOLE_SCRIPT, MODULE], ids=["script", "module"])
def test_a_working_directory_that_is_gone_is_one_line(tmp_path, program):
    command = " ".join(program)
    result = subprocess.run(
        f"mkdir gone && cd gone && rmdir ../gone && {command} -p hello",
        shell=True,
        cwd=tmp_path,
        env={**os.environ, **QUICK},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)


@pytest.mark.skipif(os.name == "nt", reason="passes bytes that are no text")
def test_b25_an_argument_that_is_no_text_is_a_prompt_all_the_same(tmp_path):
    result = subprocess.run(
        [*CONSOLE_SCRIPT, "-p", b"read \xff", "--output-format", "stream-json"],
        cwd=tmp_path,
        env={**os.environ, **QUICK},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (result.returncode, lines(result.stdout.decode())[-1]["type"]) == (0, "turn_finished")


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_every_family_answers(tmp_path, api):
    with LabThread() as lab:
        result = run(
            "-p",
            "hello",
            "--base-url",
            lab.base_url,
            "--model",
            "m",
            "--api",
            api,
            "--effort",
            "low",
            cwd=tmp_path,
        )
        assert lab.requests[0].path == {"chat": "/v1/chat/completions"}.get(api, f"/v1/{api}")
    assert (result.returncode, result.stderr) == (0, "")
    assert "demo model" in result.stdout


def test_w11_debug_logs_every_event_with_its_numbers_and_without_secrets(tmp_path):
    key = "not-shaped-like-any-key-0123"
    home = tmp_path / "home"
    with LabThread([error(503, f"busy with {key}"), Answer((TextPiece("hello"),))]) as lab:
        env = {
            "MINI_AGENT_HOME": str(home),
            "MINI_AGENT_BASE_URL": lab.base_url,
            "MINI_AGENT_MODEL": "m",
            "MINI_AGENT_API_KEY": key,
        }
        result = run("-p", f"say {key}", "--debug", cwd=tmp_path, env=env)
    (log,) = (home / "logs").iterdir()
    assert str(log) in result.stderr
    events = lines(log.read_text())
    assert next(event["type"] for event in events if "attempt" in event) == "stream_started"
    assert {event["attempt"] for event in events if "attempt" in event} == {1, 2}
    assert len({event["request_id"] for event in events if "request_id" in event}) == 1
    assert [event["n"] for event in events if event["type"] == "channel_token"]
    assert key not in log.read_text()
    assert events[-1]["type"] == "turn_finished"


def test_w11_a_log_that_cant_be_written_ends_nothing(tmp_path):
    (tmp_path / "home").write_text("a file where the folder should be")
    result = run("-p", "hello", "--debug", cwd=tmp_path, env={"MINI_AGENT_HOME": str(tmp_path / "home")})
    assert result.returncode in (0, 2)
    assert "Traceback" not in result.stderr
    (tmp_path / "home").unlink()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "logs").write_text("a file where the folder should be")
    result = run("-p", "hello", "--debug", cwd=tmp_path, env={"MINI_AGENT_HOME": str(tmp_path / "home")})
    assert (result.returncode, result.stdout[:4]) == (0, "I am")
    assert "debug log can't be written" in result.stderr


def test_what_a_planted_dotenv_wants_is_said_on_stderr(tmp_path):
    (tmp_path / ".env").write_text("MINI_AGENT_BASE_URL=http://127.0.0.1:1/v1\n")
    result = run("-p", "hello", cwd=tmp_path)
    assert result.returncode == 0
    assert "not obeyed" in result.stderr
