"""The journal's writer: what reaches the system and when, and what is left of it at any cut."""

import stat
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_lives import (
    HEADER,
    RECORDS,
    RESUMED,
    Later,
    answered,
    at,
    begun,
    call,
    ended,
    lives,
    ran,
    read,
    runs,
    said,
    started,
    written,
)
from test_history import assert_sendable

from mini_agent.core.events import AttemptProgress, ToolFinished, ToolOutput
from mini_agent.core.history import repair
from mini_agent.core.messages import Text
from mini_agent.record.journal import Journal
from mini_agent.record.lines import Reader
from mini_agent.record.rebuild import rebuild
from mini_agent.record.records import Checkpoint
from mini_agent.record.sessions import load


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "sessions" / "group" / "s.jsonl"


def test_a_session_in_which_nothing_was_said_leaves_nothing(path):
    journal = Journal(path, HEADER)
    journal.sync()
    journal.close()
    assert (journal.is_begun, journal.problem) == (False, None)
    assert not path.parent.parent.parent.exists()


def test_the_header_comes_first_and_again_where_a_session_is_opened_again(path):
    journal = Journal(path, HEADER)
    journal.write(begun())
    assert (journal.id, journal.is_begun) == ("s", True)
    journal.close()
    for _ in range(2):
        Journal.resume(path, RESUMED).close()
    journal = Journal.resume(path, RESUMED)
    assert journal.is_begun
    journal.write(ended())
    journal.close()
    assert read(path) == [HEADER, begun(), RESUMED, ended()]


@pytest.mark.skipif(sys.platform == "win32", reason="no modes there")
def test_what_is_made_is_for_nobody_else(path):
    written(path, [begun()])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("record", [begun(), started(), answered(Text("x")), runs("c"), ran("c"), ended()])
def test_s1_whatever_is_no_piece_of_text_is_with_the_system_at_once_and_the_pieces_before_it(path, record):
    later = Later()
    journal = Journal(path, HEADER, later=later)
    journal.write(said("a", 1))
    journal.write(said("b", 2))
    assert not path.exists()
    journal.write(record)
    assert [type(one) for one in read(path)[1:]] == [type(said("x")), type(record)]
    assert (read(path)[1].text, read(path)[1].n_first, read(path)[1].n_last) == ("ab", 1, 2)
    assert later.waiting == []
    journal.close()


def test_s1_pieces_of_text_reach_the_system_when_the_time_is_up(path):
    later = Later()
    journal = Journal(path, HEADER, later=later)
    for text in ("half ", "an ", "ans"):
        journal.write(said(text))
        assert len(later.waiting) == 1
    later.fire()
    assert read(path)[-1].text == "half an ans"
    journal.write(ToolOutput(t=1.0, call_id="c", text="line\n"))
    assert len(later.waiting) == 1
    later.fire()
    assert read(path)[-1].text == "line\n"
    journal.write(said("wer"))
    journal.close()
    assert later.waiting == []
    assert read(path)[-1].text == "wer"


def test_t7_the_beginning_of_a_key_waits_for_its_end(path):
    key = "my-own-gateways-key"
    later = Later()
    journal = Journal(path, HEADER, secrets=(key,), later=later)
    for text in ("it is my-own", "-gateways", "-key."):
        journal.write(said(text))
        later.fire()
    journal.close()
    assert [record.text for record in read(path)[1:]] == ["it is ", "[redacted]."]


def test_signs_of_life_are_not_kept_and_part_no_pieces(path):
    progress = AttemptProgress(**at(), phase="silent", bytes=0, silent_s=1.0)
    written(path, [said("a"), progress, said("b")])
    assert [record.text for record in read(path)[1:]] == ["ab"]


@given(lives(), st.data())
@settings(deadline=None)
def test_s1_e19_cut_at_any_byte_it_gives_a_history_that_can_be_sent_and_loses_no_finished_call(
    tmp_path_factory, records, data
):
    path = written(tmp_path_factory.mktemp("cut") / "s.jsonl", records)
    whole = path.read_bytes()
    check_cut(path, whole, data.draw(st.integers(0, len(whole))))


def test_s1_cut_at_every_byte(tmp_path):
    records = [begun(), started(), said("é"), answered(Text("look"), call("a"), call("b")), runs("a")]
    records += [ran("a", "result"), runs("b"), RESUMED, begun("on"), started(), said("we\n"), ended()]
    path = written(tmp_path / "s.jsonl", records)
    whole = path.read_bytes()
    for place in range(len(whole) + 1):
        check_cut(path, whole, place)


def check_cut(path, whole, place):
    path.write_bytes(whole[:place])
    ended_there = whole[place : place + 1] == b"\n"  # a line that lacks nothing but its end is whole
    there = list(Reader(whole[: place + ended_there].splitlines(keepends=True)))
    journal = Journal.resume(path, RESUMED)
    loaded = load(path)
    assert (loaded.messages, loaded.state) == rebuild(there)
    assert loaded.skipped == 0
    messages = list(loaded.messages)
    assert_sendable(messages)
    assert repair(messages) == messages
    since = max((n for n, record in enumerate(there) if isinstance(record, Checkpoint)), default=0)
    results = {result.content for message in messages for result in message.tool_results}
    assert results >= {record.content for record in there[since:] if isinstance(record, ToolFinished)}
    journal.write(begun("next"))
    journal.close()
    assert journal.problem is None
    assert load(path).messages == (*messages, *rebuild([begun("next")])[0])


@given(st.lists(RECORDS, min_size=1, max_size=12), st.data())
@settings(deadline=None)
def test_s1_any_records_cut_at_any_byte_give_a_history_that_can_be_sent(tmp_path_factory, records, data):
    path = written(tmp_path_factory.mktemp("any") / "s.jsonl", records)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    Journal.resume(path, RESUMED).close()
    loaded = load(path)
    assert loaded.skipped == 0
    assert_sendable(list(loaded.messages))
    assert repair(loaded.messages) == list(loaded.messages)
