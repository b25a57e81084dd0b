"""One writer a journal, over processes; a lock goes with its process however that ends."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from record_lives import RESUMED, begun, written

from mini_agent.core.errors import ConfigError
from mini_agent.record.journal import Journal
from mini_agent.record.locking import lock
from mini_agent.record.sessions import load

HERE = str(Path(__file__).parent)
HOLDER = """
import sys
from pathlib import Path
from record_lives import HEADER, RESUMED, begun
from mini_agent.core.errors import ConfigError
from mini_agent.record.journal import Journal
path = Path(sys.argv[2])
try:
    journal = Journal.resume(path, RESUMED) if sys.argv[1] == "resume" else Journal(path, HEADER)
    if sys.argv[1] == "new":
        journal.write(begun("of the holder"))
    print("open", flush=True)
except ConfigError as error:
    print(error, flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(how, path):
    """Another process that has the journal open, until its input ends or it is killed; and what it said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([HERE, os.environ["PYTHONPATH"]])}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, how, str(path)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait(30)
        process.stdin.close()
        process.stdout.close()


@pytest.mark.parametrize("how", ["new", "resume"])
def test_a_journal_that_another_process_writes_is_refused_until_that_is_gone(tmp_path, how):
    path = tmp_path / "20261130-160512-a1b2c3.jsonl"
    if how == "resume":
        written(path, [begun()])
    with holder(how, path) as (process, said):
        assert said == "open"
        before = path.read_bytes()
        with pytest.raises(ConfigError, match=r"20261130-160512-a1b2c3 is open in another mini-agent"):
            Journal.resume(path, RESUMED)
        assert path.read_bytes() == before
        assert load(path).state.turns == 1  # reading is free
        process.kill()
        process.wait(30)
        Journal.resume(path, RESUMED).close()


def test_this_process_keeps_others_out_as_long_as_it_has_it_open(tmp_path):
    path = written(tmp_path / "s.jsonl", [begun()])
    journal = Journal.resume(path, RESUMED)
    with holder("resume", path) as (_, said):
        assert "open in another mini-agent" in said
    with pytest.raises(ConfigError):
        Journal.resume(path, RESUMED)
    journal.close()
    with holder("resume", path) as (_, said):
        assert said == "open"


def test_a_file_system_without_locks_keeps_nobody_out(monkeypatch, tmp_path):
    name = "msvcrt.locking" if sys.platform == "win32" else "fcntl.flock"

    def unknown(*_):
        raise OSError("no locks here")

    monkeypatch.setattr(name, unknown)
    with (tmp_path / "f").open("wb") as file:
        assert lock(file.fileno())
