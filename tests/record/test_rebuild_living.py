"""What a journal gives back is what the living agent has: after whole turns, and wherever one was stopped."""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from record_lives import (
    HEADER,
    RESUMED,
    retrying,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
from scripted_model import Hang, ScriptedModel

from mini_agent.agent.handover import HandOver
from mini_agent.agent.loop import Agent, TurnSettings
from mini_agent.agent.tools import Registry, Tool, ToolContext
from mini_agent.core.errors import CutError, ProviderError
from mini_agent.core.events import (
    Compacted,
    TurnFinished,
)
from mini_agent.core.history import Conversation, repair
from mini_agent.core.messages import Reasoning, Response, Text, ToolCall, ToolResult, Usage
from mini_agent.core.permission import Decision
from mini_agent.models.traced import TracedModel
from mini_agent.record.journal import Journal
from mini_agent.record.records import Checkpoint
from mini_agent.record.sessions import load
from mini_agent.workspace.files import Files


class Say(msgspec.Struct):
    text: str = "said"


class Echo(Tool[Say]):
    name = "echo"
    description = "Says it again."
    effect = "reads"
    parameters = Say

    async def run(self, arguments, context):
        await context.output(f"live: {arguments.text}\n")
        if arguments.text == "crash":
            raise ValueError("crashed")
        await asyncio.sleep(0)
        return ToolResult(arguments.text, detail="shown")


class Living:
    """An agent and its journal, which sees each event first, as a session does it."""

    def __init__(self, folder):
        self.journal = Journal(folder / "s.jsonl", HEADER)
        self.model = ScriptedModel()
        self.conversation = Conversation()
        handover = HandOver()
        self.agent = Agent(
            TracedModel(self.model, handover.put_now, now=lambda: 0.0),
            Registry([Echo()]),
            self.conversation,
            self.approve,
            context=ToolContext(Files(folder)),
            settings=TurnSettings(model="m", system="s", max_steps=5, window=100_000),
            handover=handover,
            now=lambda: 0.0,
        )

    async def approve(self, request):
        return Decision(True)

    async def turn(self, prompt, *script, cancel_at=None, cancel_on=None, killed_at=None):
        """One turn; cancelled on seeing that event, by number or by kind, or torn off there. Returns the events seen."""
        self.model._script = list(script)
        seen = []
        async with aclosing(self.agent.run(prompt)) as events:
            async for event in events:
                seen.append(event)
                self.journal.write(event)
                if isinstance(event, Compacted):
                    self.journal.write(Checkpoint(t=0.0, messages=self.conversation.messages))
                if len(seen) == cancel_at or (cancel_on is not None and isinstance(event, cancel_on)):
                    self.agent.cancel()
                if len(seen) == killed_at:
                    break
        return seen

    def same(self):
        """What the journal gives is what the agent has."""
        journal = self.journal
        journal.write(HEADER)  # whatever waits is written with it
        loaded = load(journal.path)
        assert list(loaded.messages) == repair(self.conversation.messages)
        assert loaded.skipped == 0
        return loaded.state


def calling(*texts, stop="tool_use", text=""):
    made = tuple(ToolCall(f"c{n}", "echo", {"text": one}) for n, one in enumerate(texts, 1))
    return Response((*((Text(text),) if text else ()), *made), stop_reason=stop, usage=Usage(10, 2))


def saying(text, stop="end_turn"):
    return Response((Text(text),), stop_reason=stop, usage=Usage(5, 1))


CUT = CutError("cut")
REFUSED = ProviderError("no such parameter", kind="bad_request", retryable=False, refused="effort")
OVERFLOW = ProviderError("too long", kind="context_overflow", retryable=False)
TURNS = {
    "answered": [saying("hello")],
    "with tools": [calling("a", "crash", text="look"), calling("b"), saying("done")],
    "failed half-way": [calling("a"), ["half", CUT]],
    "retried half-way": [["half", retrying(), "an", "swer", saying("whole")]],
    "cut at max_tokens": [calling("a", "b", stop="max_tokens"), saying("smaller")],
    "refused": [Response((Text("never"),), stop_reason="refusal")],
    "filtered with a call": [calling("a", stop="content_filter", text="well")],
    "asked again": [REFUSED, saying("then so")],
    "steps": [calling(str(n)) for n in range(5)],
    "thought": [Response((Reasoning("hm", signature="S", encrypted="E"), Text("x")))],
    "unknown tool": [
        Response((ToolCall("c", "none", {}), ToolCall("c", "echo", {})), stop_reason="tool_use"),
        saying("x"),
    ],
}


@pytest.mark.parametrize("script", TURNS.values(), ids=TURNS)
async def test_a_whole_turn_gives_what_the_agent_has(tmp_path, script):
    living = Living(tmp_path)
    await living.turn("go", *script)
    finished = (await living.turn("again", *script))[-1]
    where = living.same()
    assert (where.has_ended, where.reason, where.turns) == (True, finished.reason, 2)
    living.journal.close()


async def test_a_failed_turn_that_went_on_gives_what_the_agent_has(tmp_path):
    living = Living(tmp_path)
    await living.turn("go", calling("a"), ["half", CUT])
    assert living.same().is_waiting
    await living.turn(None, saying("done"))
    assert (living.same().turns, living.same().text) == (1, "done")
    living.journal.close()


async def test_a_compacted_history_gives_what_the_agent_has(tmp_path):
    living = Living(tmp_path)
    for number in range(4):
        await living.turn(f"turn {number} {'x' * 9000}", calling("a" * 5000), saying("done"))
    seen = await living.turn("too much", OVERFLOW, saying("the summary"), saying("answer"))
    assert any(isinstance(event, Compacted) for event in seen)
    assert seen[-1].reason == "done"
    living.same()
    await living.turn("and", calling("a"), saying("well"))
    living.same()
    living.journal.close()


@pytest.mark.parametrize("stop_at", range(1, 25))
@pytest.mark.parametrize("how", ["cancel_at", "killed_at"])
async def test_a_turn_that_stops_at_any_event_gives_what_the_agent_has(tmp_path, stop_at, how):
    living = Living(tmp_path)
    await living.turn("before", calling("a"), saying("done"))
    script = [
        calling("a", "b", "crash", text="look"),
        ["half", " an ", "answer", retrying(), "wh", saying("whole")],
    ]
    seen = await living.turn("go", *script, **{how: stop_at})
    if how == "cancel_at" or isinstance(seen[-1], TurnFinished):
        living.same()
    else:  # nobody saw to the history: what is rebuilt can be sent, and knows all that was told
        living.journal.write(RESUMED)
        rebuilt = list(load(living.journal.path).messages)
        assert repair(rebuilt) == rebuilt
    await living.turn("after", saying("well"))
    if how == "cancel_at":
        living.same()
    living.journal.close()


async def test_a_turn_cancelled_while_the_model_is_silent_keeps_what_was_said(tmp_path):
    living = Living(tmp_path)
    task = asyncio.create_task(living.turn("go", ["half an ", "ans", Hang]))
    await living.model.hanging.wait()
    living.agent.cancel()
    await task
    assert living.same().text == "half an ans"
    living.journal.close()


STEPS = st.one_of(
    st.lists(st.sampled_from(["a", "b", "crash"]), min_size=1, max_size=3).map(lambda texts: calling(*texts)),
    st.just(["half", retrying(), calling("a", text="then")]),
    st.just(calling("a", stop="max_tokens", text="long")),
    st.just(REFUSED),
)
ENDS = st.sampled_from(
    [saying("done"), ["half ", CUT], ["half", retrying(), "an", saying("answer")], OVERFLOW]
)
SCRIPTS = st.tuples(st.lists(STEPS, max_size=3), ENDS).map(lambda parts: [*parts[0], parts[1]])


@given(st.lists(st.tuples(SCRIPTS, st.none() | st.integers(1, 20), st.booleans()), min_size=1, max_size=3))
@settings(deadline=None, max_examples=60)
def test_any_turns_give_what_the_agent_has(tmp_path_factory, turns):
    async def live():
        living = Living(tmp_path_factory.mktemp("living"))
        for script, cancel_at, goes_on in turns:
            # Where the window is full, a summary is asked for: what is left of the script is as good as any.
            await living.turn(
                None if goes_on else "go", *script, saying("sum"), saying("on"), cancel_at=cancel_at
            )
            living.same()
        living.journal.close()

    asyncio.run(live())
