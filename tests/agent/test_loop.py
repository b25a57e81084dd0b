"""One turn of the agent, with a scripted model and real tools of the test's own."""

import asyncio
import contextlib
from contextlib import aclosing

import msgspec
import pytest
from scripted_model import Hang, ScriptedModel

from mini_agent.agent.calls import CUT
from mini_agent.agent.loop import GO_ON, MOST_CUTS, Agent, TurnSettings
from mini_agent.agent.tools import Registry, Tool, ToolContext
from mini_agent.core.errors import CutError, ToolError
from mini_agent.core.events import (
    ApprovalAsked,
    ApprovalGiven,
    ChannelToken,
    Completed,
    Failed,
    Notice,
    Retrying,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UserMessage,
)
from mini_agent.core.history import CANCELLED, Conversation, repair
from mini_agent.core.messages import Message, Reasoning, Response, Text, ToolCall, ToolResult, Usage
from mini_agent.core.permission import Decision, Preview
from mini_agent.core.profile import Profile
from mini_agent.session import Session
from mini_agent.workspace.files import Files


class Say(msgspec.Struct):
    text: str = "said"


class Echo(Tool[Say]):
    """Reads nothing, returns its argument; some texts make it misbehave."""

    name = "echo"
    description = "Says it again."
    effect = "reads"
    parameters = Say

    def __init__(self):
        self.ran = []
        self.waiting = asyncio.Event()

    async def run(self, arguments, context):
        self.ran.append(arguments.text)
        if arguments.text == "refuse":
            raise ToolError("not like this")
        if arguments.text == "crash":
            raise RecursionError("\ud800[/x]")
        if arguments.text == "wrong":
            return None
        if arguments.text == "inner-cancel":
            inner = asyncio.ensure_future(asyncio.Event().wait())
            inner.cancel()
            await inner
        if arguments.text == "exit":
            raise SystemExit(3)
        if arguments.text == "mute":
            raise MuteError
        if arguments.text == "number":
            return ToolResult(12)
        if arguments.text == "surrogate":
            await context.output("\ud83d")
            return ToolResult("\ud83d", detail="\ud83d")
        if arguments.text == "swallow":
            self.waiting.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
        if arguments.text == "wait":
            await context.output("one line\n")
            self.waiting.set()
            await asyncio.Event().wait()
        return ToolResult(arguments.text, detail="shown")


class Command(msgspec.Struct):
    command: str


class MuteError(Exception):
    def __str__(self):
        raise ValueError("no words")


class Change(Echo):
    name = "change"
    effect = "writes"

    def preview(self, arguments, context):
        if arguments.text == "impossible":
            raise ToolError("no such file")
        if arguments.text == "untargeted":
            return Preview(summary="who knows")
        return Preview(
            targets=(str(context.files.workspace.root / "a.txt"),), summary="change a.txt", diff="-a\n+b\n"
        )


def calls(*texts, name="echo", stop="tool_use", text=""):
    blocks = (Text(text),) if text else ()
    made = tuple(ToolCall(f"c{place}", name, {"text": one}) for place, one in enumerate(texts, 1))
    return Response((*blocks, *made), stop_reason=stop, usage=Usage(input_tokens=10, output_tokens=2))


def said(text, stop="end_turn"):
    return Response((Text(text),), stop_reason=stop, usage=Usage(input_tokens=5, output_tokens=1))


class Bench:
    """An agent with everything around it."""

    def __init__(self, folder, *script, mode="ask", allow=True, max_steps=20, queued=tuple, tools=()):
        self.model = ScriptedModel(*script)
        self.echo, self.change = Echo(), Change()
        self.conversation = Conversation()
        self.asked = []
        self.allow = allow
        self.agent = Agent(
            self.model,
            Registry([self.echo, self.change, *tools]),
            self.conversation,
            self.approve,
            context=ToolContext(Files(folder)),
            settings=TurnSettings(model="m", system="s", mode=mode, max_steps=max_steps),
            queued=queued,
            now=lambda: 0.0,
        )

    async def approve(self, request):
        self.asked.append(request)
        if self.allow is None:
            await asyncio.Event().wait()
        return Decision(bool(self.allow))

    async def turn(self, prompt="go"):
        async with aclosing(self.agent.run(prompt)) as events:
            return [event async for event in events]

    async def turn_until(self, happened, act, prompt="go"):
        """Runs a turn; once the event `happened` is set, `act` is called."""

        async def watch():
            await happened.wait()
            act()

        watcher = asyncio.create_task(watch())
        events = await self.turn(prompt)
        await watcher
        return events

    def roles(self):
        return [message.role for message in self.conversation.messages]


@pytest.fixture
def bench(tmp_path):
    return lambda *script, **options: Bench(tmp_path, *script, **options)


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


async def test_an_answer_without_calls_is_a_turn_of_one_request(bench):
    one = bench(said("hello"))
    events = await one.turn("hi")
    assert next(type(event) for event in events if not isinstance(event, ChannelToken)) is TurnStarted
    assert events[-1] == TurnFinished(
        t=0.0, reason="done", text="hello", usage=Usage(input_tokens=5, output_tokens=1)
    )
    assert one.conversation.messages == (
        Message("user", (Text("hi"),)),
        Message("assistant", (Text("hello"),)),
    )
    assert one.model.closed == 1


async def test_calls_are_run_and_their_results_go_back_in_call_order(bench):
    one = bench(calls("a", "b"), said("done"))
    events = await one.turn()
    assert one.echo.ran == ["a", "b"]
    assert [result.content for result in one.model.requests[1].messages[-1].tool_results] == ["a", "b"]
    assert [event.detail for event in of(events, ToolFinished)] == ["shown", "shown"]
    assert events[-1].usage == Usage(input_tokens=15, output_tokens=3)
    assert all(result.detail is None for result in one.conversation.messages[2].tool_results)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall("x", "central_list"), "There is no tool 'central_list'"),
        (ToolCall("x", "ech"), "Did you mean echo"),
        (ToolCall("x", ""), "There is no tool ''"),
        (ToolCall("x", "echo", {}, invalid="Expecting value at 9"), "Expecting value at 9"),
        (ToolCall("x", "echo", {"text": ["no"]}), "`$.text`"),
        (ToolCall("x", "echo", {"text": "refuse"}), "not like this"),
        (ToolCall("x", "echo", {"text": "crash"}), "echo failed: RecursionError"),
        (ToolCall("x", "echo", {"text": "wrong"}), "NoneType"),
        (ToolCall("x", "change", {"text": "impossible"}), "no such file"),
    ],
    ids=[
        "e10-unknown",
        "e10-near",
        "e10-empty",
        "e11-invalid",
        "schema",
        "refusal",
        "g19-exception",
        "g19-none",
        "preview",
    ],
)
async def test_a4_whatever_is_wrong_with_a_call_the_model_is_told_and_the_loop_goes_on(bench, call, expected):
    one = bench(Response((call,), stop_reason="tool_use"), said("understood"))
    events = await one.turn()
    (finished,) = of(events, ToolFinished)
    assert finished.is_error
    assert expected in finished.content
    assert events[-1].reason == "done"
    one.conversation.messages[2].tool_results[0].content.encode()


async def test_a2_none_of_a_cut_responses_calls_is_run_and_the_loop_goes_on(bench):
    one = bench(calls("a", "b", stop="max_tokens"), said("smaller"))
    events = await one.turn()
    assert one.echo.ran == []
    assert [event.content for event in of(events, ToolFinished)] == [CUT, CUT]
    assert not of(events, ToolStarted)
    assert events[-1].reason == "done"


async def test_a2_text_cut_at_max_tokens_stands_as_the_answer_with_a_notice(bench):
    events = await bench(said("half", stop="max_tokens")).turn()
    assert [event.text for event in of(events, Notice)] == ["the answer was cut at max_tokens"]
    assert (events[-1].reason, events[-1].text) == ("done", "half")


@pytest.mark.parametrize(
    ("stop", "kind"),
    [("refusal", "provider"), ("content_filter", "provider"), ("context_overflow", "context_overflow")],
)
async def test_an_end_that_is_no_answer_fails_and_runs_nothing(bench, stop, kind):
    one = bench(calls("a", stop=stop))
    events = await one.turn()
    assert one.echo.ran == []
    assert of(events, Failed)[0].error.kind == kind
    assert events[-1].reason == "failed"
    assert repair(one.conversation.messages) == list(one.conversation.messages)


async def test_steps_are_capped_and_it_is_said(bench):
    one = bench(*[calls("again")] * 3, max_steps=3)
    events = await one.turn()
    assert len(one.model.requests) == 3
    assert events[-1].reason == "max_steps"
    assert "per turn: 3" in of(events, Notice)[0].text


async def test_a_change_is_asked_about_with_its_diff_and_done_when_allowed(bench):
    one = bench(calls("x", name="change"), said("done"))
    events = await one.turn()
    assert one.asked[0].preview.diff == "-a\n+b\n"
    assert [
        type(event) for event in events if isinstance(event, ApprovalAsked | ApprovalGiven | ToolStarted)
    ] == [
        ApprovalAsked,
        ApprovalGiven,
        ToolStarted,
    ]
    assert one.change.ran == ["x"]


async def test_in_auto_mode_a_change_inside_is_not_asked_about(bench):
    one = bench(calls("x", name="change"), said("done"), mode="auto")
    await one.turn()
    assert (one.asked, one.change.ran) == ([], ["x"])


async def test_a_denied_call_is_not_run_and_the_turn_says_so(bench):
    one = bench(calls("x", name="change"), said("then not"), allow=False)
    events = await one.turn()
    assert one.change.ran == []
    assert of(events, ToolFinished)[0].content.startswith("Denied")
    assert events[-1].reason == "denied"


async def test_denied_means_that_no_call_succeeded_afterwards(bench):
    one = bench(calls("x", name="change"), calls("fine"), said("got there"), allow=False)
    assert (await one.turn())[-1].reason == "done"
    one = bench(calls("fine"), calls("x", name="change"), calls("refuse"), said("no"), allow=False)
    assert (await one.turn())[-1].reason == "denied"


async def test_a_model_error_is_one_failed_and_the_history_stays_sendable(bench):
    one = bench(calls("a"), ["half an ", CutError("it broke")], said("again"))
    events = await one.turn()
    assert [type(event) for event in events[-2:]] == [Failed, TurnFinished]
    assert of(events, Failed)[0].error.kind == "cut"
    assert "half" not in str(one.conversation.messages)
    assert (await one.turn("go on"))[-1].reason == "done"


async def test_e02_cancel_in_mid_text_keeps_what_was_said(bench):
    one = bench(["I will ", "write", Hang], said("fine"))
    events = await one.turn_until(one.model.hanging, one.agent.cancel)
    assert [event.text for event in of(events, ChannelToken)] == ["I will ", "write"]
    assert events[-1] == TurnFinished(t=0.0, reason="cancelled", text="I will write", usage=Usage())
    assert one.conversation.messages[-1] == Message("assistant", (Text("I will write"),))
    assert one.model.closed == 1
    assert (await one.turn("next"))[-1].reason == "done"


async def test_e01_cancel_in_a_tool_gives_every_call_its_result(bench):
    one = bench(calls("first", "wait", "never", name="change"), said("ok"), mode="auto")
    events = await one.turn_until(one.change.waiting, one.agent.cancel)
    results = one.conversation.messages[-1].tool_results
    assert [result.content for result in results] == ["first", CANCELLED, CANCELLED]
    assert of(events, ToolOutput)[0].text == "one line\n"
    assert events[-1].reason == "cancelled"
    assert one.roles() == ["user", "assistant", "tool"]
    await one.turn("go on")
    assert one.roles() == ["user", "assistant", "tool", "user", "assistant"]


async def test_e15_what_is_kept_of_an_interrupted_turn_is_plain_words(bench):
    one = bench(calls("wait", name="change", text="I look."), ["It is half", Hang], said("ok"), mode="auto")
    await one.turn_until(one.change.waiting, one.agent.cancel)
    _, answer, results = one.conversation.messages
    assert answer.text == "I look."
    assert results.tool_results[0].is_error
    assert "by the user" in results.tool_results[0].content
    assert "not run, or not to its end" in results.tool_results[0].content
    await one.turn_until(one.model.hanging, one.agent.cancel, "go on")
    assert one.conversation.messages[-1] == Message("assistant", (Text("It is half"),))
    await one.turn("and now?")
    assert one.roles()[-3:] == ["assistant", "user", "assistant"]


async def test_cancel_in_an_approval_runs_nothing(bench):
    one = bench(calls("x", name="change"), allow=None)
    asked = asyncio.Event()
    one.agent._calls._approve = lambda request: (asked.set(), one.approve(request))[1]
    events = await one.turn_until(asked, one.agent.cancel)
    assert (one.change.ran, events[-1].reason) == ([], "cancelled")
    assert not of(events, ApprovalGiven)


async def test_e17_a_second_cancel_changes_nothing(bench):
    one = bench(calls("wait"))
    events = await one.turn_until(one.echo.waiting, lambda: (one.agent.cancel(), one.agent.cancel()))
    assert [event for event in events if isinstance(event, TurnFinished)] == [events[-1]]


async def test_cancel_before_the_first_step_and_without_a_turn(bench):
    one = bench(said("never asked"), said("hello"))
    one.agent.cancel()
    events = []
    async with aclosing(one.agent.run("go")) as run:
        one.agent.cancel()  # no turn yet: nothing to end
        async for event in run:
            one.agent.cancel()
            events.append(event)
    assert events[-1].reason == "cancelled"
    assert (await one.turn("next"))[-1].reason == "done"


async def test_closing_the_generator_tears_the_turn_down(bench):
    one = bench(calls("wait"), said("later"))
    async with aclosing(one.agent.run("go")) as run:
        async for event in run:
            if isinstance(event, ToolStarted):
                break
    assert [task for task in asyncio.all_tasks() if task.get_name() == "turn"] == []
    assert one.roles() == ["user", "assistant", "tool"]
    assert (await one.turn("next"))[-1].reason == "done"


async def test_w10_nothing_is_asked_or_run_before_the_caller_has_come_back(bench):
    one = bench(calls("a"), said("done"))
    async with aclosing(one.agent.run("go")) as run:
        async for event in run:
            await asyncio.sleep(0)
            if isinstance(event, TurnStarted):
                assert one.model.requests == []
            if isinstance(event, Completed) and event.response.tool_calls:
                assert one.echo.ran == []
            if isinstance(event, ToolStarted):
                await asyncio.sleep(0)
                assert one.echo.ran == []


async def test_a_second_turn_at_the_same_time_is_refused(bench):
    one = bench([Hang])
    async with aclosing(one.agent.run("go")) as run:
        await anext(run)
        with pytest.raises(RuntimeError, match="already"):
            await anext(one.agent.run("me too"))


async def test_r8_cancel_in_a_wait_leaves_nothing_of_the_attempt_that_was_given_up(bench):
    error = CutError("it broke")
    waiting = Retrying(
        t=0.0,
        request_id="r",
        attempt=1,
        retry=1,
        max_retries=4,
        wait_s=30,
        decision="plain",
        error=error.info(),
    )
    one = bench(["half an ans", waiting, Hang])
    events = await one.turn_until(one.model.hanging, one.agent.cancel)
    assert (events[-1].reason, events[-1].text) == ("cancelled", "")
    assert "half" not in str(one.conversation.messages)


async def test_a_tool_that_swallows_its_cancel_does_not_keep_the_turn(bench):
    one = bench(calls("swallow", "never", name="change"), said("never asked"), mode="auto")
    events = await one.turn_until(one.change.waiting, one.agent.cancel)
    assert events[-1].reason == "cancelled"
    assert one.change.ran == ["swallow"]
    assert len(one.model.requests) == 1


@pytest.mark.parametrize("how", ["inner-cancel", "exit", "mute", "number"])
async def test_g19_whatever_a_tool_raises_or_returns_the_loop_goes_on(bench, how):
    one = bench(calls(how), said("understood"))
    events = await one.turn()
    assert of(events, ToolFinished)[0].is_error
    assert events[-1].reason == "done"


async def test_b25_what_a_tool_says_can_be_told_and_sent(bench):
    one = bench(calls("surrogate"), said("done"))
    events = await one.turn("\udcff prompt")
    for event in events:
        msgspec.json.encode(event)
    assert of(events, ToolFinished)[0].content == "\ufffd"


async def test_a_change_that_does_not_say_what_it_touches_is_asked_about(bench):
    one = bench(calls("untargeted", name="change"), said("done"), mode="auto")
    await one.turn()
    assert len(one.asked) == 1


async def test_max_tokens_used_up_by_thinking_is_no_answer(bench):
    events = await bench(Response((Reasoning("hm"),), stop_reason="max_tokens")).turn()
    assert of(events, Failed)[0].error.kind == "empty"
    assert "--max-tokens" in of(events, Failed)[0].error.message


@pytest.mark.parametrize("steps", range(12))
async def test_a_consumer_that_is_cancelled_at_any_moment_leaves_no_turn_behind(bench, steps):
    one = bench(calls("a"), said("hello"), said("later"), said("later"))
    task = asyncio.create_task(one.turn())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [left for left in asyncio.all_tasks() if left.get_name() == "turn"] == []
    one.model._script = [said("next")]
    assert (await one.turn("next"))[-1].text == "next"


async def test_problems_are_told_with_the_first_turn_and_do_not_hide_a_cancel(bench):
    one = bench([Hang], said("fine"))
    session = Session(
        one.agent,
        one.model,
        one.conversation,
        Profile(),
        None,
        ["tool x could not be loaded"],
        now=lambda: 0.0,
    )
    events = []
    async with aclosing(session.run("go")) as run:
        async for event in run:
            events.append(event)
            if isinstance(event, Notice):
                session.cancel()
    assert [event.text for event in of(events, Notice)] == ["tool x could not be loaded"]
    assert events[-1].reason == "cancelled"


async def test_u4_what_was_written_meanwhile_goes_out_with_the_next_request(bench):
    written = [["look at b too", "please"]]
    one = bench(calls("a"), said("ok"), queued=lambda: written.pop() if written else [])
    events = await one.turn()
    assert [(event.text, event.queued) for event in of(events, UserMessage)] == [
        ("look at b too", True),
        ("please", True),
    ]
    assert one.roles() == ["user", "assistant", "tool", "user", "user", "assistant"]
    assert [message.text for message in one.model.requests[1].messages[-2:]] == ["look at b too", "please"]
    assert repair(one.conversation.messages) == list(one.conversation.messages)


async def test_u4_what_is_written_behind_the_last_answer_waits_for_a_turn_of_its_own(bench):
    one = bench(said("ok"), queued=lambda: ["never asked for"])
    assert of(await one.turn(), UserMessage) == []
    assert one.roles() == ["user", "assistant"]


class Shell(Echo):
    name = "run_bash"
    effect = "runs"
    parameters = Command

    async def run(self, arguments, context):
        await context.output("live\n")
        if arguments.command == "wait":
            self.waiting.set()
            await asyncio.Event().wait()
        return ToolResult("two files", is_error=arguments.command == "fail")


@pytest.mark.parametrize("command", ["ls", "fail"])
async def test_u9_a_command_of_the_users_own_is_run_without_a_question_and_the_model_told(bench, command):
    one = bench(said("I see"), tools=[Shell()])
    async with aclosing(one.agent.shell(command)) as run:
        events = [event async for event in run]
    assert [type(event) for event in events] == [
        TurnStarted,
        ToolStarted,
        ToolOutput,
        ToolFinished,
        UserMessage,
        TurnFinished,
    ]
    assert one.asked == []
    assert one.roles() == ["user"]
    await one.turn("what did I do?")
    assert command in one.model.requests[0].messages[0].text
    assert "two files" in one.model.requests[0].messages[0].text


async def test_u9_a_command_of_the_users_own_that_is_cancelled_leaves_nothing(bench):
    shell = Shell()
    one = bench(said("ok"), tools=[shell])
    events = []
    async with aclosing(one.agent.shell("wait")) as run:
        async for event in run:
            events.append(event)
            if isinstance(event, ToolOutput):
                one.agent.cancel()
    assert events[-1].reason == "cancelled"
    assert one.roles() == []


async def test_a2_calls_that_are_cut_over_and_over_end_the_turn(bench):
    one = bench(*[calls("a", stop="max_tokens")] * 9)
    events = await one.turn()
    assert events[-1].reason == "repetition"
    assert len(one.model.requests) == MOST_CUTS
    assert one.echo.ran == []
    assert "raise --max-tokens" in of(events, Notice)[-1].text


async def test_an_answer_that_broke_off_is_asked_to_go_on(bench):
    one = bench(["half an", Hang], said(" answer"))
    await one.turn_until(one.model.hanging, one.agent.cancel)
    assert one.conversation.is_waiting
    events = await one.turn(None)
    assert events[0].prompt == GO_ON
    assert [message.text for message in one.model.requests[1].messages] == ["go", "half an", GO_ON]
    assert not one.conversation.is_waiting


async def test_a_stream_that_is_closed_starts_no_tool_that_nobody_was_told_of(bench):
    for steps in range(12):
        one = bench(calls("a", "b"), said("ok"))
        told = []
        async with aclosing(one.agent.run("go")) as events:
            async for event in events:
                told.append(event)
                if len(told) > steps:
                    break
        assert len(one.echo.ran) <= len(of(told, ToolStarted))
