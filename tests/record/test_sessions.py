"""Where journals lie, and which one is meant."""

import os
import random
import re
from datetime import datetime, timedelta, timezone

import pytest
from record_lives import ABOUT, HEADER, answered, begun, ended, ran, started, written

from mini_agent.core import history
from mini_agent.core.errors import ConfigError
from mini_agent.core.history import repair
from mini_agent.core.messages import Text
from mini_agent.record.journal import Journal
from mini_agent.record.records import FORMAT, Header, Resumed
from mini_agent.record.sessions import check_format, find, journal_path, latest, load, new_id


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my work").mkdir()
    return tmp_path / "my work"


def made(state, folder, session, *, mtime=None, header=HEADER):
    path = journal_path(state, folder, session)
    journal = Journal(path, header)
    journal.write(begun())
    journal.close()
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return path


def test_an_id_says_when_the_session_began_and_is_one_of_many():
    now = datetime(2026, 11, 30, 16, 5, 12, tzinfo=timezone(timedelta(hours=8)))
    rng = random.Random(1)
    ids = {new_id(now, rng) for _ in range(100)}
    assert len(ids) == 100
    assert all(one.startswith("20261130-160512-") and len(one) == 22 for one in ids)
    assert max(ids) < new_id(now + timedelta(seconds=1), rng)


def test_a_group_is_the_folders_name_and_its_real_path(state, folder, tmp_path):
    path = journal_path(state, folder, "x")
    assert path.relative_to(state).parts[0] == "sessions"
    group = path.parent.name
    assert group.startswith("my-work-")
    assert path.name == "x.jsonl"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "my work").mkdir()
    assert journal_path(state, tmp_path / "other" / "my work", "x").parent.name != group
    assert journal_path(state, tmp_path / "other" / ".." / "my work", "x") == path


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="links need rights there")
def test_a_link_to_a_folder_is_that_folder(state, folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    assert journal_path(state, tmp_path / "link", "x") == journal_path(state, folder, "x")


@pytest.mark.parametrize("name", ["é完", "...", "-", "x" * 200, "CON:*?", ""])
def test_any_folders_name_gives_a_group(state, tmp_path, name):
    group = journal_path(state, tmp_path / name if name else tmp_path.parents[-1], "x").parent.name
    assert group.encode("ascii")
    assert len(group) <= 41
    assert group[0] not in ".-"
    assert not set(group) & set('<>:"/\\|?*')


def test_latest_is_the_one_that_was_written_to_last(state, folder, tmp_path):
    assert latest(state, folder) is None
    first = made(state, folder, "20261130-000000-000001", mtime=2000)
    made(state, folder, "20261130-000000-000002", mtime=1000)
    made(state, tmp_path, "20261130-000000-000003", mtime=3000)
    journal_path(state, folder, "20261130-000000-000004").write_bytes(b"")
    assert latest(state, folder) == first


def test_find_takes_an_id_or_the_only_beginning_of_one(state, folder):
    first = made(state, folder, "20261130-160512-a1b2c3")
    second = made(state, folder, "20261130-170000-ffffff")
    assert find(state, folder, "20261130-160512-a1b2c3") == first
    assert find(state, folder, "20261130-17") == second
    made(state, folder, "20261130-17")
    assert find(state, folder, "20261130-17").stem == "20261130-17"


def test_find_says_what_is_ambiguous_or_unknown(state, folder):
    for number in range(5):
        made(state, folder, f"20261130-16051{number}-a1b2c3")
    with pytest.raises(ConfigError, match=r"5 sessions' ids .*20261130-160514-a1b2c3 and others\)"):
        find(state, folder, "2026")
    for wanted in ("2027", "", "../", "*", "a1b2c3"):
        with pytest.raises(ConfigError, match="no session whose id begins with"):
            find(state, folder, wanted)


def test_find_knows_the_sessions_of_other_folders_and_names_the_folder(state, folder, tmp_path):
    elsewhere = tmp_path / "else"
    elsewhere.mkdir()
    header = Header(**{**ABOUT, "folder": str(elsewhere)})
    path = made(state, tmp_path, "20261130-160512-a1b2c3", header=header)
    with pytest.raises(ConfigError, match=rf"20261130-160512-a1b2c3 .*--cwd {re.escape(str(elsewhere))}$"):
        find(state, folder, "2026")
    here = made(state, folder, "20261130-170000-000000")
    assert find(state, folder, "2026") == here  # this folder's first
    with pytest.raises(ConfigError, match="--cwd"):
        find(state, folder, "20261130-16")
    made(state, tmp_path, "20261130-160513-000000")
    with pytest.raises(ConfigError, match="none of them is of this folder"):
        find(state, folder, "20261130-16")
    elsewhere.rename(tmp_path / "renamed")
    assert find(state, folder, "20261130-160512") == path  # its folder may be this one by now


def test_a_folder_by_the_name_of_a_journal_is_none(state, folder):
    path = made(state, folder, "20261130-160512-a1b2c3")
    (path.parent / "20261130-170000-ffffff.jsonl").mkdir()
    assert latest(state, folder) == path


def test_a_newer_format_is_refused_before_the_journal_is_touched(state, folder):
    path = made(state, folder, "20261130-160512-a1b2c3", header=Header(**{**ABOUT, "format": FORMAT + 1}))
    path.write_bytes(path.read_bytes() + b'{"torn')
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="newer mini-agent"):
        check_format(path)
    assert path.read_bytes() == before


def test_a_session_of_another_folder_is_found_also_without_a_header(state, folder, tmp_path):
    path = made(state, tmp_path, "20261130-160512-a1b2c3")
    path.write_bytes(b"\0\0\n")
    with pytest.raises(ConfigError, match="belongs to another folder: name that with --cwd"):
        find(state, folder, "2026")


def test_load_gives_the_conversation_the_first_header_and_what_was_skipped(state, folder):
    path = journal_path(state, folder, "s")
    written(path, [begun("hi"), started(), answered(Text("hello")), ended()])
    with path.open("ab") as file:
        file.write(b"\0\0\0\n" + b'{"type":"draft"}\n')
    journal = Journal.resume(path, Resumed(**{**ABOUT, "model": "other"}))
    journal.write(begun("on"))
    journal.close()
    loaded = load(path)
    assert [message.text for message in loaded.messages] == ["hi", "hello", "on"]
    assert (loaded.header, loaded.skipped) == (HEADER, 1)
    assert (loaded.state.turns, loaded.state.is_waiting) == (2, True)


def test_load_of_an_empty_or_broken_file_is_an_empty_conversation(tmp_path):
    for data in (b"", b"\0" * 100, b"x\n" * 100):
        (tmp_path / "s.jsonl").write_bytes(data)
        loaded = load(tmp_path / "s.jsonl")
        assert (loaded.messages, loaded.header) == ((), None)


def test_load_refuses_what_it_would_misread_and_says_what_cant_be_read(tmp_path):
    header = Resumed(**{**ABOUT, "version": "9.9"}, format=FORMAT + 1)
    path = tmp_path / "s.jsonl"
    written(path, [ran("c"), header])
    with pytest.raises(ConfigError, match=r"newer mini-agent, 9\.9"):
        load(path)
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "none.jsonl")


def test_loading_looks_at_the_whole_history_no_more_often_for_a_long_session(tmp_path, monkeypatch):
    passes = []
    monkeypatch.setattr(history, "repair", lambda messages: passes.append(1) or repair(messages))
    turns = [begun("do"), started(), answered(Text("done")), ended()]
    counted = []
    for count in (1, 1000):
        passes.clear()
        loaded = load(written(tmp_path / f"{count}.jsonl", turns * count))
        assert (len(loaded.messages), loaded.state.turns) == (2 * count, count)
        counted.append(len(passes))
    assert counted[0] == counted[1]
