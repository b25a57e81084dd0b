"""One session in use: what it counts, what can be set while it lasts, what it writes down."""

import sys
from contextlib import aclosing
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "agent"))
from scripted_model import ScriptedModel

from mini_agent.agent.asking import TurnSettings
from mini_agent.agent.handover import HandOver
from mini_agent.agent.loop import Agent
from mini_agent.agent.tools import Registry, ToolContext
from mini_agent.core.errors import CutError
from mini_agent.core.events import Compacted, Notice
from mini_agent.core.history import Conversation
from mini_agent.core.messages import Image, Message, Response, Text, Usage
from mini_agent.core.profile import ModelFacts, Price, Profile
from mini_agent.models.traced import TracedModel
from mini_agent.record.journal import Journal
from mini_agent.record.records import Header
from mini_agent.record.sessions import load
from mini_agent.session import Session
from mini_agent.workspace.files import Files

DOLLARS = Profile(models={"m": ModelFacts(window=1000, price=Price(input=1, output=2))})
YUAN = Profile(models={"m": ModelFacts(price=Price(input=1, output=2, currency="CNY"))})
HEADER = Header(t=0, id="s", folder="/", version="1", model="m", profile="p")


def answer(text="ok", read=100_000, written=10_000):
    return Response((Text(text),), usage=Usage(input_tokens=read, output_tokens=written))


@pytest.fixture
def opened(tmp_path):
    """Opens a session on a scripted model, with a journal."""

    def make(*script, profile=DOLLARS, history=()):
        model, handover = ScriptedModel(*script), HandOver()
        traced = TracedModel(model, handover.put_now, now=lambda: 0.0)
        conversation = Conversation(history)
        agent = Agent(
            traced,
            Registry([]),
            conversation,
            None,
            context=ToolContext(Files(tmp_path)),
            settings=TurnSettings(model="m", system="s"),
            handover=handover,
            now=lambda: 0.0,
        )
        journal = Journal(tmp_path / "j" / "s.jsonl", HEADER)

        async def models():
            return ["m", "n"]

        session = Session(agent, traced, conversation, profile, models, journal=journal, now=lambda: 0.0)
        session.model, session.path = model, journal.path
        return session

    return make


async def turn(session, *arguments):
    async with aclosing(session.run(*arguments)) as events:
        return [event async for event in events]


async def test_u6_a_turn_and_a_session_know_their_cost(opened):
    session = opened(answer(), answer())
    assert (await turn(session, "one"))[-1].cost_usd == pytest.approx(0.12)
    assert (await turn(session, "two"))[-1].cost_usd == pytest.approx(0.12)
    status = session.status
    assert status.cost == pytest.approx(0.24)
    assert status.usage == Usage(input_tokens=200_000, output_tokens=20_000)
    assert status.context_tokens == 110_000
    await session.aclose()


async def test_a_cost_in_another_currency_is_no_cost_in_dollars(opened):
    session = opened(answer(), profile=YUAN)
    assert (await turn(session, "one"))[-1].cost_usd is None
    assert session.status.cost == pytest.approx(0.12)
    assert session.status.price.currency == "CNY"
    await session.aclose()


async def test_what_is_not_known_costs_nothing_that_is_said(opened):
    session = opened(answer(read=None), [CutError("broke")], profile=Profile())
    assert (await turn(session, "one"))[-1].cost_usd is None
    assert session.status.cost is None
    await session.aclose()


async def test_what_is_set_counts_from_the_next_turn_on(opened):
    session = opened(answer(), answer())
    await turn(session, "one")
    session.use(model="n", mode="auto", effort="high")
    assert (session.status.model, session.status.mode, session.status.effort) == ("n", "auto", "high")
    assert session.status.window is None
    await turn(session, "two")
    assert [request.model for request in session.model.requests] == ["m", "n"]
    assert session.model.requests[1].effort == "high"
    assert await session.models() == ["m", "n"]
    await session.aclose()
    assert b'"type":"change"' in session.path.read_bytes()


async def test_a_conversation_that_was_cleared_stays_so_when_it_is_loaded(opened):
    session = opened(answer("first"), answer("second"))
    await turn(session, "one")
    session.clear()
    assert session.answer == ""
    await turn(session, "two")
    assert [message.text for message in session.model.requests[1].messages] == ["two"]
    await session.aclose()
    assert [message.text for message in load(session.path).messages] == ["two", "second"]


async def test_a_conversation_that_was_summed_up_stays_so_when_it_is_loaded(opened):
    session = opened(answer("one answer"), answer("another"), answer("they talked"))
    for text in ("a" * 4000, "b" * 4000):
        await turn(session, text)
    async with aclosing(session.compact()) as events:
        told = [event async for event in events]
    assert len([event for event in told if isinstance(event, Compacted)]) == 1
    assert "they talked" in session._conversation.messages[0].text
    await session.aclose()
    assert load(session.path).messages == session._conversation.messages


async def test_nothing_to_sum_up_is_said(opened):
    session = opened(answer())
    async with aclosing(session.compact()) as events:
        told = [event async for event in events]
    assert [event.text for event in told if isinstance(event, Notice)] == ["there is nothing to sum up"]
    assert session.model.requests == []
    await session.aclose()


async def test_images_go_out_with_their_message_and_are_there_again_when_it_is_loaded(opened):
    picture = Image("image/png", b"\x89PNG")
    session = opened(answer("a cat"))
    await turn(session, "what is @cat.png?", [picture])
    assert session.model.requests[0].messages == (Message("user", (Text("what is @cat.png?"), picture)),)
    assert session.answer == "a cat"
    await session.aclose()
    assert load(session.path).messages[0].blocks[1] == picture
