"""The journal and the disk: full, gone or slow; and what is asked of it at the end of a turn."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from record_lives import HEADER, RESUMED, Later, begun, ended, read, said

from mini_agent.record import journal as journals
from mini_agent.record.journal import Journal
from mini_agent.record.lines import Reader

HERE = str(Path(__file__).parent)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "sessions" / "group" / "s.jsonl"


class Disk:
    """What `os.write` does: `room` bytes are left; None is as many as one likes."""

    def __init__(self, monkeypatch):
        self.room = None
        self.write = os.write
        monkeypatch.setattr(journals.os, "write", self)

    def __call__(self, fd, data):
        if self.room is None:
            return self.write(fd, data)
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.write(fd, bytes(data)[: self.room])
        self.room -= taken
        return taken


@pytest.mark.parametrize("room", [0, 1, 100, 150, 250])
def test_a_full_disk_is_said_once_and_no_line_is_glued_or_lost(path, monkeypatch, room):
    disk = Disk(monkeypatch)
    journal = Journal(path, HEADER)
    disk.room = room
    for number in range(4):
        journal.write(begun(f"{number}"))
        journal.sync()
    assert "No space left" in journal.problem
    problem = journal.problem
    disk.room = 150
    journal.write(begun("4"))
    disk.room = None
    journal.write(ended())
    journal.close()
    assert journal.problem is problem
    reader = Reader(path.read_bytes().splitlines(keepends=True))
    assert list(reader) == [HEADER, *(begun(f"{number}") for number in range(5)), ended()]
    assert reader.broken == 0


def test_what_a_full_disk_left_half_is_mended_when_it_is_opened_again(path, monkeypatch):
    disk = Disk(monkeypatch)
    journal = Journal(path, HEADER)
    journal.write(begun())
    disk.room = 10
    journal.write(ended())
    journal.close()
    assert not path.read_bytes().endswith(b"\n")
    disk.room = None
    Journal.resume(path, RESUMED).close()
    assert read(path) == [HEADER, begun()]


def test_a_journal_that_waits_for_too_much_is_given_up(path, monkeypatch):
    disk = Disk(monkeypatch)
    disk.room = 0
    monkeypatch.setattr(journals, "BACKLOG", 1000)
    later = Later()
    journal = Journal(path, HEADER, later=later)
    for _ in range(50):
        journal.write(said("x" * 100))
        journal.write(ended())
    disk.room = None
    journal.write(said("x"))
    journal.write(ended())
    journal.close()
    assert (path.read_bytes(), later.waiting) == (b"", [])


def test_a_folder_that_cant_be_made_ends_nothing_and_may_come_back(path):
    path.parent.parent.parent.write_text("a file where the folder should be")
    journal = Journal(path, HEADER)
    journal.write(begun())
    journal.sync()
    assert "can't be written" in journal.problem
    path.parent.parent.parent.unlink()
    journal.write(ended())
    journal.close()
    assert read(path) == [HEADER, begun(), ended()]


def test_a_session_whose_journal_cant_be_opened_goes_on_without_one(path):
    path.mkdir(parents=True)
    journal = Journal.resume(path, RESUMED)
    assert "can't be written" in journal.problem
    journal.write(said("x"))
    journal.write(begun())
    journal.sync()
    journal.close()


CHILD = """
import os, resource, sys
from pathlib import Path
from record_lives import HEADER, begun, ended
from mini_agent.record.journal import Journal
resource.setrlimit(resource.RLIMIT_FSIZE, (777, resource.RLIM_INFINITY))
journal = Journal(Path(sys.argv[1]), HEADER)
for number in range(20):
    journal.write(begun(str(number)))
print(journal.problem, os.path.getsize(sys.argv[1]), flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.write(ended())
os._exit(9)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on a file's size there")
def test_a_file_that_may_not_grow_is_said_and_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "s.jsonl"
    told = python(CHILD, path)
    assert "can't be written" in told.stdout
    assert told.stdout.split()[-1] == "777"
    assert read(path) == [HEADER, *(begun(str(number)) for number in range(20)), ended()]


def python(code, *arguments):
    """Runs a program of its own to its end."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([HERE, os.environ["PYTHONPATH"]])},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


# To the disk


def test_s1_sync_reaches_the_disk_once_for_what_is_new(path, monkeypatch):
    synced = []
    monkeypatch.setattr(journals.os, "fsync", synced.append)
    journal = Journal(path, HEADER)
    journal.sync()
    assert synced == []
    journal.write(ended())
    journal.sync()
    journal.sync()
    assert len(synced) == 1
    journal.write(begun())
    journal.sync()
    assert len(synced) == 2
    journal.close()
    journal.sync()
    assert len(synced) == 2


def test_sync_in_a_thread_holds_up_neither_writing_nor_closing(path, monkeypatch):
    inside, go_on, synced = threading.Event(), threading.Event(), []

    def fsync(fd):
        inside.set()
        assert go_on.wait(30)
        synced.append(os.fstat(fd).st_size)  # the file it was called for, although that was closed meanwhile

    monkeypatch.setattr(journals.os, "fsync", fsync)
    journal = Journal(path, HEADER)
    journal.write(begun())
    thread = threading.Thread(target=journal.sync)
    thread.start()
    assert inside.wait(30)
    journal.write(ended())
    journal.close()
    go_on.set()
    thread.join(30)
    assert synced == [path.stat().st_size]
    assert journal.problem is None


def test_a_disk_that_fails_to_sync_is_said_and_asked_again(path, monkeypatch):
    def fsync(fd):
        raise OSError(errno.EIO, "Input/output error")

    journal = Journal(path, HEADER)
    journal.write(ended())
    with monkeypatch.context() as broken:
        broken.setattr(journals.os, "fsync", fsync)
        journal.sync()
    assert "Input/output error" in journal.problem
    synced = []
    monkeypatch.setattr(journals.os, "fsync", synced.append)
    journal.sync()
    assert len(synced) == 1
    journal.close()
