"""Histories of every kind and of every family, for the encoders' rules."""

import sys
from pathlib import Path

from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
from test_history import BLOCKS, MESSAGES

from mini_agent.core.messages import Message, Reasoning, Text, ToolCall

SEALS = st.one_of(
    st.just(Reasoning("t", field="thinking", signature="S")),
    st.just(Reasoning("t", field="thinking")),
    st.just(Reasoning("", field="thinking", signature="S")),
    st.just(Reasoning(field="redacted_thinking", encrypted="X")),
    st.just(Reasoning("t", field="reasoning_item", encrypted="E", id="rs_1")),
    st.just(Reasoning("", field="reasoning_item", encrypted="E")),
    st.just(Reasoning("t", field="reasoning_item", id="rs_1")),
    st.just(Reasoning("t", field="reasoning_content")),
)
ODD = st.one_of(
    st.builds(
        ToolCall, st.sampled_from(["a.b", "a_b", "é", "x" * 80, "x" * 81]), st.sampled_from(["f.g", "", "ls"])
    ),
    st.builds(Text, st.sampled_from(["x ", "x", " \n"])),
)
ANSWERS = st.builds(Message, st.just("assistant"), st.lists(SEALS | ODD | BLOCKS, max_size=5).map(tuple))
HISTORIES = MESSAGES | st.lists(ANSWERS | MESSAGES.filter(bool).map(lambda messages: messages[0]), max_size=6)
"""Lists of messages that are not repaired yet."""
