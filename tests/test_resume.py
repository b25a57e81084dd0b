"""Sessions that go on (`-c`, `-r`): real processes, one after the other, on one journal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import CONSOLE_SCRIPT, QUICK, run

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.lab.replies import Hold, error, event_stream
from mini_agent.lab.server import LabThread

DOWN = {"DEMO_FAIL_RATE": "1", "MINI_AGENT_MAX_RETRIES": "1"}


def journals():
    return sorted(Path(os.environ["MINI_AGENT_HOME"]).glob("sessions/*/*.jsonl"))


def records(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def asked(lab):
    """The texts of the last request, by role."""
    return [
        (one["role"], one["content"]) for one in lab.requests[-1].json["messages"] if one["role"] != "system"
    ]


def say(text):
    return Answer((TextPiece(text),))


def against(lab, *arguments, cwd, **options):
    endpoint = {"MINI_AGENT_MODEL": "m", "MINI_AGENT_BASE_URL": lab.base_url}
    return run(*arguments, cwd=cwd, env={**endpoint, **options.pop("env", {})}, **options)


def test_c_goes_on_with_the_last_session_of_this_folder(tmp_path):
    with LabThread([say("one"), say("two")]) as lab:
        assert against(lab, "-p", "first", cwd=tmp_path).stdout == "one\n"
        assert against(lab, "-c", "-p", "second", cwd=tmp_path).stdout == "two\n"
        assert asked(lab) == [("user", "first"), ("assistant", "one"), ("user", "second")]
    (journal,) = journals()
    kinds = [record["type"] for record in records(journal)]
    assert kinds[0] == "header"
    assert kinds.count("turn_finished") == 2
    assert kinds.count("resumed") == 1


def test_r_takes_an_id_or_its_beginning_and_another_folder_is_named(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        assert run("-p", "hello", cwd=folder).returncode == 0
    mine = next(path for path in journals() if path.parent.name.startswith("here"))
    other = next(path for path in journals() if path.parent.name.startswith("there"))
    assert run("-r", mine.stem, "-p", "again", cwd=here).returncode == 0
    assert run("-r", mine.stem[:-2], "-p", "again", cwd=here).returncode == 0
    wrong = run("-r", other.stem, "-p", "again", cwd=here)
    assert wrong.returncode == 2
    assert f"--cwd {there}" in wrong.stderr
    assert run("-r", other.stem, "--cwd", str(there), "-p", "again", cwd=here).returncode == 0
    assert "no session" in run("-r", "19", "-p", "again", cwd=here).stderr
    assert sum(record["type"] == "turn_started" for record in records(mine)) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-c", "-p", "x"], "no session in this folder"),
        (["-c", "-r", "x", "-p", "x"], "two sessions"),
        (["-r", "x", "-p", "x"], "no session whose id begins"),
    ],
)
def test_what_can_not_go_on_is_one_line_and_2(tmp_path, arguments, words):
    result = run(*arguments, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_r10_a_transient_failure_is_75_and_c_goes_on_from_there_without_a_new_message(tmp_path):
    with LabThread([say("one"), error(503, "busy"), error(503, "busy"), say("two")]) as lab:
        assert against(lab, "-p", "first", cwd=tmp_path).returncode == 0
        failed = against(lab, "-c", "-p", "second", cwd=tmp_path, env={"MINI_AGENT_MAX_RETRIES": "1"})
        assert failed.returncode == 75
        assert "mini-agent -c -p ''" in failed.stderr
        again = against(lab, "-c", "-p", "", cwd=tmp_path)
        assert (again.returncode, again.stdout) == (0, "two\n")
        assert asked(lab) == [("user", "first"), ("assistant", "one"), ("user", "second")]


def test_where_every_turn_has_its_answer_a_prompt_is_needed(tmp_path):
    assert run("-p", "hello", cwd=tmp_path).returncode == 0
    result = run("-c", "-p", "", cwd=tmp_path)
    assert result.returncode == 2
    assert "there is no prompt" in result.stderr


def test_a_session_has_one_writer(tmp_path):
    with LabThread([say("one"), event_stream(Hold())]) as lab:
        assert against(lab, "-p", "first", cwd=tmp_path).returncode == 0
        endpoint = {"MINI_AGENT_MODEL": "m", "MINI_AGENT_BASE_URL": lab.base_url}
        with subprocess.Popen(
            [*CONSOLE_SCRIPT, "-c", "-p", "second"],
            cwd=tmp_path,
            env={**os.environ, **QUICK, **endpoint},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as first:
            until = time.monotonic() + 30
            while len(lab.requests) < 2 and time.monotonic() < until:
                time.sleep(0.01)
            second = run("-c", "-p", "third", cwd=tmp_path)
            first.kill()
        assert second.returncode == 2
        assert "open in another mini-agent" in second.stderr
        assert run("-c", "-p", "third", cwd=tmp_path).returncode == 0


def test_a_session_in_which_nothing_was_said_leaves_nothing(tmp_path):
    assert run("-p", "", cwd=tmp_path).returncode == 2
    assert run("--version", cwd=tmp_path).returncode == 0
    assert journals() == []


def test_a_journal_in_the_way_of_which_a_file_lies_is_said_and_the_answer_is_given(tmp_path):
    (Path(os.environ["MINI_AGENT_HOME"]) / "sessions").write_text("in the way", encoding="utf-8")
    result = run("-p", "hello", cwd=tmp_path)
    assert result.returncode == 0
    assert "journal can't be written" in result.stderr
    assert "demo model" in result.stdout


def test_keys_are_not_in_the_journal_even_where_the_user_or_the_server_says_them(tmp_path):
    secret = "sesame-open-1234567890"
    with LabThread([say(f"your key is {secret}")]) as lab:
        result = against(
            lab,
            "-p",
            f"my key is {secret}",
            cwd=tmp_path,
            env={"MINI_AGENT_API_KEY": secret, "OTHER_API_KEY": "x"},
        )
    assert result.returncode == 0
    (journal,) = journals()
    text = journal.read_text(encoding="utf-8")
    assert secret not in text
    assert "your key is [redacted]" in text
    if sys.platform != "win32":
        assert journal.stat().st_mode & 0o077 == 0


def half_said():
    """An answer that stops half-way and goes on saying nothing."""
    return event_stream(b'data: {"choices":[{"index":0,"delta":{"content":"Half an"}}]}\n\n', Hold())


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_an_answer_that_broke_off_is_kept_and_goes_on(tmp_path, how):
    with LabThread([half_said(), say("answer")]) as lab:
        endpoint = {"MINI_AGENT_MODEL": "m", "MINI_AGENT_BASE_URL": lab.base_url}
        with subprocess.Popen(
            [*CONSOLE_SCRIPT, "-p", "first", "--output-format", "stream-json"],
            cwd=tmp_path,
            env={**os.environ, **QUICK, **endpoint},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as first:
            while b'"Half an"' not in first.stdout.readline():
                pass
            until = time.monotonic() + 30
            while "Half an" not in "".join(path.read_text("utf-8") for path in journals()):
                assert time.monotonic() < until
                time.sleep(0.01)
            first.send_signal(getattr(signal, how))
        again = against(lab, "-c", "-p", "", cwd=tmp_path)
        assert (again.returncode, again.stdout) == (0, "answer\n")
        assert asked(lab)[:2] == [("user", "first"), ("assistant", "Half an")]
        assert "Go on" in asked(lab)[2][1]


def unauthorised():
    return error(401, {"error": {"message": "wrong key", "code": "invalid_api_key"}})


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ("MINI_AGENT_API_KEY=sesame-two-234567\n", ["Bearer sesame-one-123456", "Bearer sesame-two-234567"]),
        ("DEEPSEEK_API_KEY=other-vendor-345678\n", ["Bearer sesame-one-123456"]),
    ],
    ids=["another key", "another vendor's"],
)
def test_a_refused_key_is_read_again_but_only_this_endpoints_own(tmp_path, monkeypatch, later, expected):
    home = Path(os.environ["MINI_AGENT_HOME"])
    monkeypatch.delenv("MINI_AGENT_API_KEY", raising=False)

    def script(request):
        (home / ".env").write_text(later, encoding="utf-8")
        return unauthorised() if len(lab.requests) == 1 else say("in")

    (home / ".env").write_text("MINI_AGENT_API_KEY=sesame-one-123456\n", encoding="utf-8")
    with LabThread(script) as lab:
        result = against(lab, "-p", "open", cwd=tmp_path)
        assert [request.headers["authorization"] for request in lab.requests] == expected
    assert result.returncode == (0 if len(expected) == 2 else 1)
    assert "sesame" not in journals()[0].read_text(encoding="utf-8")
