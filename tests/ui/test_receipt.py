from mini_agent.core.events import (
    AgentEvent,
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    FirstToken,
    StreamStarted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from mini_agent.core.messages import Usage
from mini_agent.ui.receipt import Receipt


def line(*events: AgentEvent, end: float, cost: float | None = None) -> str:
    receipt = Receipt()
    for event in (
        TurnStarted(t=0, prompt=""),
        *events,
        TurnFinished(t=end, reason="done", text="", usage=Usage(), cost_usd=cost),
    ):
        receipt.feed(event)
    return receipt.line()


def started(t: float, request: str = "r1", attempt: int = 1) -> StreamStarted:
    return StreamStarted(t=t, request_id=request, attempt=attempt, model="", api="")


def first(t: float, request: str = "r1") -> FirstToken:
    return FirstToken(t=t, request_id=request, attempt=1, ttft_s=0)


def ended(outcome: str = "completed", **more: object) -> AttemptEnded:
    fields = {"t": 0, "request_id": "r1", "attempt": 1, "total_s": 5, "first_token_s": 1}
    return AttemptEnded(**(fields | {"usage": Usage(812, 200, 512)} | more), outcome=outcome)


def test_u6_one_request() -> None:
    assert (
        line(started(0.5), first(1.5), ended(), end=5.5, cost=0.00123)
        == "first token 1.50 s · total 5.50 s · 50 tok/s · in 812 (512 cached) · out 200 · $0.0012"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert line(started(0), ended(usage=Usage(), first_token_s=None), end=12) == "total 12.0 s"
    assert line(end=1) == ""


def test_unstreamed_both_times_are_the_same() -> None:
    assert (
        line(started(0), first(4), ended(first_token_s=4, total_s=4, usage=Usage(None, 100)), end=4)
        == "first token 4.00 s · total 4.00 s · 25 tok/s · out 100"
    )


def test_failed_attempts_are_counted_as_waste_and_the_first_token_is_that_of_the_answer() -> None:
    said = line(
        started(0),
        first(1),
        ended("failed", usage=Usage(None, 30), estimated=True),
        started(3, attempt=2),
        first(4),
        ended(usage=Usage(None, 200)),
        end=8,
    )
    assert said.startswith("first token 4.00 s · total 8.00 s")
    assert said.endswith("· 1 failed attempt, ~30 tokens wasted")


def test_tools_and_questions() -> None:
    said = line(
        started(0),
        first(1),
        ended(),
        ApprovalAsked(t=2, call_id="c", name="", summary=""),
        ApprovalGiven(t=62, call_id="c", decision="allow"),
        ToolStarted(t=62, call_id="c", name="", arguments={}),
        ToolFinished(t=64, call_id="c", name="", is_error=False, content="", elapsed_s=62),
        started(64, "r2"),
        first(65, "r2"),
        ended(),
        end=68,
    )
    assert said.startswith("first token 1.00 s · total 8.00 s · 50 tok/s · in 1624 (1024 cached) · out 400")
    assert said.endswith("tools 2.00 s")


def test_a_question_that_was_cancelled_is_no_time_either() -> None:
    assert line(started(0), ApprovalAsked(t=2, call_id="c", name="", summary=""), end=60) == "total 2.00 s"


def test_an_estimate_of_what_was_wasted_does_not_make_the_answers_own_figures_one() -> None:
    broken = ended("failed", usage=Usage(output_tokens=7), estimated=True)
    said = line(started(0), broken, started(1, attempt=2), first(2), ended(), end=6)
    assert "50 tok/s · in 812 (512 cached) · out 200 · 1 failed attempt, ~7 tokens wasted" in said
    assert "~50" not in said
