"""Reasoning between think tags inside the content."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.core.events import ChannelToken
from mini_agent.wire.assembly import Assembler, Origin
from mini_agent.wire.think_tags import ThinkTags


def sorted_out(pieces: list[str]) -> tuple[str, str]:
    """The reasoning and the text of this content."""
    assembler = Assembler(Origin("request", 1, 0.0))
    tags = ThinkTags(assembler)
    for piece in pieces:
        tags.add(piece)
    tags.end()
    said = {"reasoning": "", "text": ""}
    for event in assembler.take():
        if isinstance(event, ChannelToken):
            said[event.channel] += event.text
    return said["reasoning"], said["text"]


CASES = [
    ("", "", ""),
    ("plain", "", "plain"),
    ("<think>plan</think>answer", "plan", "answer"),
    ("\n <think>\nplan\n</think>\r\n\n  answer", "\nplan\n", "  answer"),
    ("<think>a < b </thin</think>c </think> <think>d</think>", "a < b </thin", "c </think> <think>d</think>"),
    ("<think></think>", "", ""),
    ("<think>only", "only", ""),
    ("<think>only</thi", "only</thi", ""),
    ("<thi", "", "<thi"),
    (" \n", "", " \n"),
    ("<thinking>x", "", "<thinking>x"),
    ("a <think>b</think> c", "", "a <think>b</think> c"),
    ("x</think>y</think>", "", "xy</think>"),
    ("</think>\n\ny", "", "y"),
    ("a < b <", "", "a < b <"),
    (" " * 3000 + "<think>x", "", " " * 3000 + "<think>x"),
]


@pytest.mark.parametrize(("content", "reasoning", "text"), CASES)
def test_b20_tags_whole_and_in_single_characters(content: str, reasoning: str, text: str) -> None:
    assert sorted_out([content]) == (reasoning, text)
    assert sorted_out(list(content)) == (reasoning, text)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<", "</th", "ink>", "think", ">", "\n", " ", "x"]),
        max_size=8,
    )
)
def test_b20_tags_cut_anywhere(pieces: list[str]) -> None:
    content = "".join(pieces)
    assert sorted_out(pieces) == sorted_out([content]) == sorted_out(list(content))


def test_b20_only_what_may_be_a_tag_is_held_back() -> None:
    assembler = Assembler(Origin("request", 1, 0.0))
    tags = ThinkTags(assembler)
    shown = []
    for piece in ("He", "llo <", "t", "o>", " a <"):
        tags.add(piece)
        shown.append("".join(event.text for event in assembler.take() if isinstance(event, ChannelToken)))
    assert shown == ["He", "llo ", "", "<to>", " a "]
