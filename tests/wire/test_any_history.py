"""Any history, cut anywhere, repaired, to any shipped vendor in any family it speaks: what is sent breaks no rule."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_histories import HISTORIES

from mini_agent.core.history import repair
from mini_agent.core.messages import Message, Request, Text, ToolSpec
from mini_agent.core.profile import Profile
from mini_agent.lab.rules import violations
from mini_agent.wire.adapters import adapter
from mini_agent.wire.profiles import shipped, speaking

READ = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
SPOKEN = [speaking(one, api) for one in shipped().values() for api in (one.api, *one.families)]
WITHOUT = [frozenset[str](), frozenset({"reasoning"}), frozenset({"stream_options"})]
ECHOING = [one for one in SPOKEN if one.api == "messages" and one.echo_reasoning != "never"]

cuts = st.tuples(st.integers(0, 7), st.integers(0, 7))


def said(one: Profile) -> str:
    return f"{one.name} {one.api}"


def request(messages: Sequence[Message], cut: tuple[int, int]) -> Request:
    start, end = cut
    left = [*messages[start : len(messages) - end], Message("user", (Text("go on"),))]
    return Request(tuple(repair(left)), system="Be short.", tools=(READ,), model="m")


def broken(profile: Profile, asked: Request, without: frozenset[str]) -> list[str]:
    """The rules that are broken."""
    body = adapter(profile.api).encode(asked, profile, without)
    msgspec.json.encode(body)
    echo = profile.name == "deepseek" and profile.api == "chat" and "reasoning" not in without
    unsigned = profile in ECHOING and "reasoning" not in without
    found = violations(profile.api, body, echo_reasoning=echo)
    # Who keeps no seals wants unsigned thoughts back (E05).
    return [one for one in found if not (unsigned and one.endswith("has no signature"))]


@pytest.mark.parametrize("profile", SPOKEN, ids=said)
@settings(deadline=None, max_examples=60)
@given(messages=HISTORIES, cut=cuts, without=st.sampled_from(WITHOUT))
def test_e05_what_any_vendor_is_sent_breaks_no_rule_of_its_family(
    profile: Profile, messages: list[Message], cut: tuple[int, int], without: frozenset[str]
) -> None:
    assert broken(profile, request(messages, cut), without) == []


@pytest.mark.parametrize("profile", SPOKEN, ids=said)
@settings(deadline=None, max_examples=30)
@given(messages=HISTORIES)
def test_reasoning_that_was_refused_is_gone_or_there_instead(
    profile: Profile, messages: list[Message]
) -> None:
    """In chat completions the policy is turned round; where reasoning is sealed, none goes back."""
    asked = request(messages, (0, 0))
    body = adapter(profile.api).encode(asked, profile, frozenset({"reasoning"}))
    entries = body["input" if profile.api == "responses" else "messages"]
    if profile.api == "responses":
        assert all(entry["type"] != "reasoning" for entry in entries)
    elif profile.api == "messages":
        parts = [part for entry in entries for part in entry["content"]]
        assert not {"thinking", "redacted_thinking"} & {part["type"] for part in parts}
    else:
        answers = [entry for entry in entries if entry["role"] == "assistant"]
        echoed = [entry for entry in answers if isinstance(entry.get(profile.echo_field), str)]
        expected = sum(message.role == "assistant" for message in asked.messages)
        assert len(echoed) == (expected if profile.echo_reasoning == "never" else 0)
