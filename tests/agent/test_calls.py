"""The calls of one response: what runs side by side and what does not, repetition, and results that are too large."""

import asyncio
import re
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.agent import calls as calling
from mini_agent.agent.calls import CUT, REPEATED, SIDE_BY_SIDE, CallRunner
from mini_agent.agent.handover import HandOver
from mini_agent.agent.tools import Registry, Tool, ToolContext
from mini_agent.core.errors import ToolError
from mini_agent.core.events import ApprovalAsked, ApprovalGiven, ToolFinished, ToolOutput, ToolStarted
from mini_agent.core.history import CANCELLED, Conversation, repair
from mini_agent.core.messages import Response, ToolCall, ToolResult
from mini_agent.core.permission import Decision, Preview
from mini_agent.workspace.files import Files
from mini_agent.workspace.spill import LIMIT, Spill


class Word(msgspec.Struct):
    text: str = ""
    path: str | None = None


class Look(Tool[Word]):
    """Only reads. `gates` holds back the calls whose text has one; everything that happens is in `log`."""

    name = "look_up"
    description = "Looks."
    effect = "reads"
    parameters = Word

    def __init__(self, log):
        self.log = log
        self.gates = {}
        self.running = self.peak = 0

    def preview(self, arguments, context):
        self.log.append(f"preview {arguments.text}")
        if arguments.text == "impossible":
            raise ToolError("it can't be done")
        if arguments.path is None:
            return Preview(summary=f"look {arguments.text}")
        return Preview((str(context.files.workspace.resolve(arguments.path)),), summary="look there")

    async def run(self, arguments, context):
        result = await self._run(arguments, context)
        self.log.append(f"done {arguments.text}")
        return result

    async def _run(self, arguments, context):
        self.log.append(f"begin {arguments.text}")
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            await context.output(arguments.text)
            if arguments.text in self.gates:
                await self.gates[arguments.text].wait()
            if arguments.text == "crash":
                raise RecursionError("crash")
            if arguments.text == "refuse":
                raise ToolError("refuse")
            if arguments.text == "swallow":
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
            if arguments.text == "inner-cancel":
                raise asyncio.CancelledError
            return ToolResult(f"saw {arguments.text}")
        finally:
            try:
                await asyncio.sleep(0)  # its clean-up takes a while
            finally:
                self.running -= 1
                self.log.append(f"end {arguments.text}")


class Change(Look):
    name = "change_it"
    effect = "writes"

    def preview(self, arguments, context):
        super().preview(arguments, context)
        path = str(context.files.workspace.resolve(arguments.path or "a.txt"))
        return Preview((path,), summary="change a.txt")


class Large(Look):
    """Says whatever it is asked for, as often as it takes."""

    name = "large_one"

    async def run(self, arguments, context):
        if arguments.text.startswith("!"):
            raise ToolError(arguments.text * LIMIT)
        return ToolResult(arguments.text * LIMIT)


class Room:
    """A CallRunner with everything around it, and the little of a turn that it needs."""

    def __init__(self, folder, mode="auto", spill=None, clock=lambda: 0.0):
        self.log = []
        self.look, self.change = Look(self.log), Change(self.log)
        self.look.gates = self.change.gates
        self.conversation = Conversation()
        self.handover = HandOver()
        self.asked = []
        self.answers = []
        self.events = []
        files = Files(folder, readable=spill.folder if spill else None)
        self.runner = CallRunner(
            Registry([self.look, self.change, Large(self.log)]),
            self.conversation,
            self.approve,
            context=ToolContext(files, spill=spill),
            mode=mode,
            handover=self.handover,
            now=lambda: 0.0,
            clock=clock,
        )
        self.runner.begin_turn()

    async def approve(self, request):
        self.asked.append(request)
        return Decision(self.answers.pop(0))

    def gate(self, *texts):
        for text in texts:
            self.look.gates[text] = asyncio.Event()
        return [self.look.gates[text] for text in texts]

    async def _work(self, made, stopped):
        try:
            await self.runner.run(made, stopped=stopped)
        finally:
            for call in self.conversation.unanswered():
                self.conversation.add_result(ToolResult(CANCELLED, is_error=True, call_id=call.id))
            self.handover.close()

    def begin(self, *made, stopped=lambda: False):
        """A task that runs the calls of one response; `watch` has to take its events."""
        self.conversation.add_response(Response(tuple(made), stop_reason="tool_use"))
        self.handover.open()
        return asyncio.create_task(self._work(made, stopped))

    async def watch(self):
        async for event in self.handover.events():
            self.events.append(event)

    async def run(self, *made, stopped=lambda: False):
        task = self.begin(*made, stopped=stopped)
        await self.watch()
        await task
        return self.results()

    async def until(self, condition):
        for _ in range(1000):
            if condition():
                return
            await asyncio.sleep(0)
        raise AssertionError("it did not come true")

    def results(self):
        """As they are sent."""
        return [result.content for result in self.conversation.sendable()[-1].tool_results]

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def room(tmp_path):
    return lambda **options: Room(tmp_path, **options)


def look(text, call_id=None, **more):
    return ToolCall(call_id or f"id-{text}", "look_up", {"text": text, **more})


def change(text, call_id=None, **more):
    return ToolCall(call_id or f"id-{text}", "change_it", {"text": text, **more})


# Side by side (A3).


async def test_a3_reads_run_side_by_side_and_results_go_back_in_call_order(room):
    one = room()
    a, b, c = one.gate("a", "b", "c")
    task = one.begin(look("a"), look("b"), look("c"))
    watching = asyncio.create_task(one.watch())
    await one.until(lambda: one.look.running == 3)
    for gate, text in (c, "c"), (a, "a"), (b, "b"):
        gate.set()
        await one.until(lambda text=text: f"end {text}" in one.log)
    await task
    await watching
    assert [event.call_id for event in one.of(ToolStarted)] == ["id-a", "id-b", "id-c"]
    assert [event.call_id for event in one.of(ToolFinished)] == ["id-c", "id-a", "id-b"]
    assert one.results() == ["saw a", "saw b", "saw c"]
    assert [event.text for event in one.of(ToolOutput)] == ["a", "b", "c"]
    assert [event.call_id for event in one.of(ToolOutput)] == ["id-a", "id-b", "id-c"]


async def test_a3_no_more_than_a_few_run_at_once(room):
    one = room()
    texts = [str(number) for number in range(20)]
    gates = one.gate(*texts)
    task = one.begin(*map(look, texts))
    watching = asyncio.create_task(one.watch())
    for done, gate in enumerate(gates):
        await one.until(lambda done=done: one.look.running == min(SIDE_BY_SIDE, 20 - done))
        gate.set()
    await task
    await watching
    assert one.look.peak == SIDE_BY_SIDE
    assert one.results() == [f"saw {text}" for text in texts]


KINDS = st.lists(
    st.sampled_from(["look", "look", "change", "unknown", "invalid", "crash", "refuse"]),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(KINDS)
def test_a3_what_changes_something_runs_alone_and_in_order(tmp_path_factory, kinds):
    made = []
    for place, kind in enumerate(kinds):
        text = kind if kind in ("crash", "refuse") else f"{kind}{place}"
        made.append(
            {
                "change": change(text, f"c{place}"),
                "unknown": ToolCall(f"c{place}", f"no_such_tool_{place}"),
                "invalid": ToolCall(f"c{place}", "look_up", {}, invalid=f"broken at {place}"),
            }.get(kind, look(text, f"c{place}"))
        )

    async def play():
        one = Room(tmp_path_factory.mktemp("ws"))
        one.answers = [True] * len(made)  # where hypothesis repeats itself
        await one.run(*made)
        return one

    one = asyncio.run(play())
    assert [result.call_id for result in one.conversation.sendable()[-1].tool_results] == [
        call.id for call in made
    ]
    happened = [entry for entry in one.log if entry.startswith(("begin", "end"))]
    for place, kind in enumerate(kinds):
        if kind == "change":
            begin, end = happened.index(f"begin change{place}"), happened.index(f"end change{place}")
            assert end == begin + 1
            before = [text.split()[1] for text in happened[:begin]]
            numbers = [
                int(text.removeprefix("look").removeprefix("change")) for text in before if text[-1].isdigit()
            ]
            assert all(number < place for number in numbers)
            assert happened[:begin].count("begin crash") == kinds[:place].count("crash")
    assert repair(one.conversation.messages) == list(one.conversation.sendable())


async def test_a3_a_change_is_looked_at_only_when_the_reads_before_it_are_done(room):
    one = room()
    await one.run(look("a"), look("b"), change("c"), look("d"))
    assert one.log.index("preview c") > max(one.log.index("end a"), one.log.index("end b"))
    assert one.log.index("preview d") > one.log.index("end c")


async def test_a3_a_read_that_needs_a_question_runs_alone(room, tmp_path):
    one = room()
    one.answers = [True]
    await one.run(look("a"), look("b"), look("out", path=str(tmp_path.parent)), look("c"), look("d"))
    happened = [entry for entry in one.log if entry.startswith(("begin", "end"))]
    assert happened[4:6] == ["begin out", "end out"]
    assert len(one.asked) == 1
    assert one.look.peak == 2


async def test_a3_calls_that_share_an_id_keep_their_order(room):
    one = room()
    await one.run(look("a", "same"), look("b", "same"), look("c", "same"))
    assert one.look.peak == 1
    assert one.results() == ["saw a", "saw b", "saw c"]


@pytest.mark.parametrize("how", ["crash", "refuse", "inner-cancel"])
async def test_a3_one_that_fails_does_not_end_the_others(room, how):
    one = room()
    (b,) = one.gate("b")
    task = one.begin(look("a"), look(how), look("b"))
    watching = asyncio.create_task(one.watch())
    await one.until(lambda: f"end {how}" in one.log)
    b.set()
    await task
    await watching
    first, failed, last = one.conversation.sendable()[-1].tool_results
    assert (first.content, last.content) == ("saw a", "saw b")
    assert failed.is_error
    assert not first.is_error


async def test_the_time_of_each_call_is_its_own(room, monkeypatch):
    monkeypatch.setattr(calling, "SIDE_BY_SIDE", 2)
    time = 0.0
    one = room(clock=lambda: time)
    a, b, c = one.gate("a", "b", "c")
    task = one.begin(look("a"), look("b"), look("c"))
    watching = asyncio.create_task(one.watch())
    await one.until(lambda: one.look.running == 2)
    time = 1.0
    a.set()
    await one.until(lambda: "begin c" in one.log)
    time = 5.0
    b.set()
    c.set()
    await task
    await watching
    assert {event.call_id: event.elapsed_s for event in one.of(ToolFinished)} == {
        "id-a": 1.0,
        "id-b": 5.0,
        "id-c": 4.0,
    }


async def test_what_the_user_took_to_answer_is_not_the_calls_time(room):
    time = 0.0
    one = room(mode="ask", clock=lambda: time)

    async def approve(request):
        nonlocal time
        time = 60.0
        return Decision(True)

    one.runner._approve = approve
    await one.run(change("a"))
    assert [event.elapsed_s for event in one.of(ToolFinished)] == [0.0]


# Cancelled.


async def test_e01_of_three_the_one_that_is_done_keeps_its_result(room):
    one = room()
    _, b, _ = one.gate("a", "b", "c")
    task = one.begin(look("a"), look("b"), look("c"))
    watching = asyncio.create_task(one.watch())
    await one.until(lambda: one.look.running == 3)
    b.set()
    await one.until(lambda: bool(one.of(ToolFinished)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await watching
    assert one.results() == [CANCELLED, "saw b", CANCELLED]
    assert one.look.running == 0
    assert {"end a", "end c"} < set(one.log)


@pytest.mark.parametrize("steps", range(40))
@pytest.mark.parametrize("held", ["", "c", "abc"])
async def test_e01_cancelled_at_any_moment_three_reads_leave_nothing_behind(room, steps, held):
    one = room()
    one.gate(*held)
    before = asyncio.all_tasks()
    watching = asyncio.create_task(one.watch())
    task = one.begin(look("a"), look("b"), look("c"), change("d"))
    for _ in range(steps):
        await asyncio.sleep(0)
    ended = task.done()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # and once more, in the clean-up
    await asyncio.wait({task})
    assert ended or task.cancelled()
    one.handover.close()  # where it had not even begun
    await watching
    assert asyncio.all_tasks() == before
    assert one.look.running == one.change.running == 0
    assert not held or "begin d" not in one.log
    assert all(f"end {text}" in one.log for text in "abcd" if f"begin {text}" in one.log)
    results = {result.call_id: result for result in one.conversation.sendable()[-1].tool_results}
    assert list(results) == ["id-a", "id-b", "id-c", "id-d"]
    assert repair(one.conversation.messages) == list(one.conversation.messages)
    assert all(results[f"id-{text}"].content == f"saw {text}" for text in "abcd" if f"done {text}" in one.log)
    for event in one.of(ToolFinished):
        assert results.pop(event.call_id).content == event.content == f"saw {event.call_id[-1]}"
    assert all(result.is_error for result in results.values())


async def test_a_read_that_swallows_its_cancel_does_not_keep_the_turn(room):
    one = room()
    task = one.begin(look("a"), look("swallow"), change("never"))
    watching = asyncio.create_task(one.watch())
    await one.until(lambda: "begin swallow" in one.log)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await watching
    assert one.results() == ["saw a", "saw swallow", CANCELLED]


async def test_nothing_more_is_run_once_the_turn_is_over(room):
    one = room()
    await one.run(look("a"), look("b"), change("c"), look("d"), stopped=lambda: "end b" in one.log)
    assert [entry for entry in one.log if entry.startswith("begin")] == ["begin a", "begin b"]


# Repetition (A5).

WARNED = "This same call has been made 3 times running."


async def test_a5_the_same_call_is_run_with_a_warning_and_then_the_user_is_asked(room):
    one = room()
    one.answers = [True, False]
    said = [(await one.run(look("a", f"c{time}")))[0] for time in range(8)]
    assert [WARNED in text for text in said] == [place in (2, 6) for place in range(8)]
    assert {text.partition("\n\n")[0] for text in said[:7]} == {"saw a"}
    assert said[7] == REPEATED
    assert one.log.count("begin a") == 7
    assert [request.reason for request in one.asked] == [
        "the model repeats this call, 4 times running now: shall it go on?"
    ] * 2
    assert one.runner.repeating
    assert not one.runner.denied


async def test_a5_where_it_shall_not_go_on_the_rest_is_not_run(room):
    one = room()
    one.answers = [False]
    for time in range(3):
        await one.run(look("a", f"c{time}"))
    results = await one.run(look("a"), look("b"), change("c"))
    assert results == [REPEATED] * 3
    assert one.runner.repeating
    assert "begin b" not in one.log
    assert [event.decision for event in one.of(ApprovalGiven)] == ["deny"]
    assert repair(one.conversation.messages) == list(one.conversation.messages)
    one.runner.begin_turn()
    assert not one.runner.repeating
    assert await one.run(look("a", "next")) == ["saw a"]


async def test_a5_a_cycle_of_parallel_calls_counts_as_well(room):
    one = room()
    one.answers = [False]
    for time in range(3):
        results = await one.run(look("a", f"a{time}"), look("b", f"b{time}"))
    assert results[0] == "saw a"
    assert results[1].startswith("saw b\n\nThese same 2 calls have been made 3 times running.")
    assert one.look.peak == 2
    assert await one.run(look("a"), look("b"), look("c")) == ["saw a", REPEATED, REPEATED]
    assert one.asked[0].reason == "the model repeats the same 2 calls, 4 times running now: shall it go on?"


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (ToolCall("", "no_such_tool", {"a": 1}), "There is no tool"),
        (ToolCall("", ""), "There is no tool ''"),
        (ToolCall("", "look_up", {}, invalid="expected a comma at 7"), "expected a comma at 7"),
        (ToolCall("", "look_up", {"text": ["no"]}), "`$.text`"),
        (ToolCall("", "look_up", {"text": "impossible"}), "it can't be done"),
        (ToolCall("", "look_up", {"text": "crash"}), "RecursionError"),
    ],
    ids=["unknown", "empty", "invalid", "schema", "preview", "crash"],
)
async def test_e10_a_call_that_can_not_be_run_counts_too(room, made, says):
    one = room()
    one.answers = [True, False]
    said = [(await one.run(msgspec.structs.replace(made, id=f"c{time}")))[0] for time in range(8)]
    assert all(says in text for text in said[:7])
    assert [WARNED in text for text in said] == [place in (2, 6) for place in range(8)]
    assert said[7] == REPEATED
    assert len(one.asked) == 2


async def test_a5_it_is_one_question_where_the_call_would_have_needed_one_anyway(room):
    one = room(mode="ask")
    one.answers = [True, True, False, True, True]
    said = [(await one.run(change("x", f"c{time}")))[0] for time in range(4)]
    assert [text.split("\n")[0][:6] for text in said] == ["saw x", "saw x", "Denied", "saw x"]
    assert WARNED in said[2]
    assert len(one.asked) == len(one.of(ApprovalAsked)) == 4
    assert one.asked[3].reason == (
        "the model repeats this call, 4 times running now: shall it go on?; it changes a file"
    )
    assert one.asked[3].preview.summary == "change a.txt"


async def test_a5_the_order_of_arguments_makes_no_difference_and_their_values_do(room):
    one = room()
    for time in range(3):
        arguments = {"text": "a", "path": "."} if time % 2 else {"path": ".", "text": "a"}
        (said,) = await one.run(ToolCall(f"c{time}", "look_up", arguments))
    assert WARNED in said
    for time in range(9):
        (said,) = await one.run(look(f"line {time}", f"d{time}"))
        assert WARNED not in said
    assert one.asked == []


async def test_a5_a_new_turn_starts_anew(room):
    one = room()
    for time in range(9):
        if time % 2 == 0:
            one.runner.begin_turn()
        assert await one.run(look("a", f"c{time}")) == ["saw a"]


# Unknown names (A4).


@pytest.mark.parametrize(
    ("called", "near"),
    [
        ("functions.look_up", "look_up"),
        ("look_up<|channel|>commentary", "look_up"),
        ("<|start|>assistant.functions.Look_Up <|message|>", "look_up"),
        ("default_api:change_it()", "change_it"),
        ("lookup", "look_up"),
        ("change-it", "change_it"),
        ("central_list", None),
        ("", None),
        ("\ud83d", None),
    ],
)
async def test_e10_an_unknown_name_is_told_the_names_and_the_nearest(room, called, near):
    one = room()
    (said,) = await one.run(ToolCall("1", called))
    assert "The tools are: look_up, change_it, large_one." in said
    assert (f"Did you mean {near}?" in said) if near else ("Did you mean" not in said)
    said.encode()
    assert one.of(ToolFinished)[0].is_error


# Too large (A7).


def large(text, call_id="big"):
    return ToolCall(call_id, "large_one", {"text": text})


def kept_in(content):
    return Path(re.search(r" in (.*), which read_file shows\]", content)[1])


async def test_a7_a_result_that_is_too_large_is_cut_and_kept_whole(room, tmp_path):
    one = room(spill=Spill(tmp_path / "spill", "run", now=lambda: 0.0))
    (content,) = await one.run(large("\u20ac\n"))
    assert len(content.encode()) < LIMIT + 300
    assert kept_in(content).read_text() == "\u20ac\n" * LIMIT
    assert one.of(ToolFinished)[0].content == content


async def test_a7_the_kept_whole_is_read_without_a_question_and_not_changed_without_one(room, tmp_path):
    (tmp_path / "ws").mkdir()
    spill = Spill(tmp_path / "spill", "run", now=lambda: 0.0)
    one = Room(tmp_path / "ws", spill=spill)
    one.answers = [False]
    (content,) = await one.run(large("xy"))
    path = str(kept_in(content))
    assert await one.run(look("kept", path=path), look("kept too", path=path)) == ["saw kept", "saw kept too"]
    assert one.asked == []
    assert (await one.run(change("kept", "c", path=path)))[0].startswith("Denied")
    assert len(one.asked) == 1


async def test_a7_errors_and_refusals_are_cut_as_well(room, tmp_path):
    one = room(spill=Spill(tmp_path / "spill", "run", now=lambda: 0.0))
    (content,) = await one.run(large("!\n"))
    assert kept_in(content).read_text() == "!\n" * LIMIT
    assert one.of(ToolFinished)[0].is_error
    one.conversation.add_response(Response((look("a"),)))
    await one.runner.refuse([look("a")], "no\n" * LIMIT)
    assert len(one.results()[0].encode()) < LIMIT + 300
    (content,) = await one.run(ToolCall("1", "nothing_" * LIMIT))
    assert len(content.encode()) < LIMIT + 300
    assert kept_in(content).exists()


async def test_a7_without_a_place_for_it_the_rest_is_only_counted(room):
    (content,) = await room().run(large("x"))
    assert content == "x" * LIMIT
    (content,) = await room().run(large("xy"))
    assert f"\n[{LIMIT:,} bytes left out here]\n" in content


async def test_a7_a_whole_that_can_not_be_kept_is_only_said(room, tmp_path):
    (tmp_path / "spill").write_text("a file")
    (content,) = await room(spill=Spill(tmp_path / "spill", "run")).run(large("xy"))
    assert "bytes left out here; the whole could not be kept: " in content


async def test_a7_the_warning_stands_behind_what_was_cut(room):
    one = room()
    for time in range(3):
        (content,) = await one.run(large("xy", f"c{time}"))
    assert content.rpartition("\n\n")[2].startswith(WARNED)


async def test_a2_what_is_refused_is_not_run(room):
    one = room()
    one.conversation.add_response(Response((look("a"), change("b"))))
    await one.runner.refuse([look("a"), change("b")], CUT)
    assert one.results() == [CUT, CUT]
    assert one.log == []
