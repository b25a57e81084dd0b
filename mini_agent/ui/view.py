"""Folds the events of one turn into what is on the screen: finished lines above, what is going on in the region."""

from collections.abc import Callable, Sequence
from typing import Protocol, assert_never

from mini_agent.core.errors import ErrorInfo
from mini_agent.core.events import (
    OWN_CALL,
    AgentEvent,
    ApprovalAsked,
    ApprovalGiven,
    AttemptEnded,
    AttemptProgress,
    BackendToolCompleted,
    BackendToolStarted,
    ChannelToken,
    Compacted,
    Completed,
    DoomLoopSignal,
    Failed,
    FirstToken,
    ImagesStripped,
    Level,
    Notice,
    ReasoningCompleted,
    ResponseStarted,
    Retrying,
    StreamStarted,
    ToolCallDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnReason,
    TurnStarted,
    UserMessage,
)
from mini_agent.core.profile import Price
from mini_agent.ui.diff import diff_rows
from mini_agent.ui.flow import (
    AROUND,
    THOUGHT_ROWS,
    AnswerText,
    AttemptShown,
    CallShown,
    NewText,
    Thought,
    ToolShown,
    Waiting,
    call_row,
    describe,
    result_rows,
    user_rows,
    whole_rows,
)
from mini_agent.ui.receipt import Receipt
from mini_agent.ui.region import Mark
from mini_agent.ui.text import fit, one_line, paint, visible, wrap

SPINNER = "⠋⠙⠸⠴"
STATUS_S = 1 / 4
"""The status line changes at most this often."""
DETAIL_ROWS = 40
_LEVELS: dict[Level, str] = {"info": "dim", "warning": "yellow", "error": "error"}


class Screen(Protocol):
    """What a view needs of `Live`."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def moving(self) -> bool: ...
    def commit(self, rows: Sequence[str]) -> None: ...
    def mark(self) -> Mark: ...
    def erase_since(self, mark: Mark) -> bool: ...
    def changed(self) -> None: ...
    def hurry(self) -> None: ...


class View:
    """One turn on the screen.

    new_text: what an answer's text is shown by. streamed: whether answers come in pieces. thinks_aloud: whether reasoning
    stays on the screen like text, in place of one line about it. clock: seconds, any origin.
    price: of the model, where it is known. reasoning: what the model thought in this turn.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        new_text: NewText,
        streamed: bool,
        thinks_aloud: bool = False,
        clock: Callable[[], float],
        price: Price | None = None,
        doing: str = "starting",
    ) -> None:
        self._screen = screen
        self._new_text = new_text
        self._streamed = streamed
        self._thinks_aloud = thinks_aloud
        self._clock = clock
        self._receipt = Receipt(price)
        self.reasoning = ""
        self._attempt: AttemptShown | None = None
        self._waiting: Waiting | None = None
        self._tools: dict[str, ToolShown] = {}
        self._is_first = False  # a first piece is about to come
        self._introduced: set[str] = set()  # calls that were shown whole with their question
        self._question = ""
        self._block = ""  # the kind of the last committed rows
        self._last_call = ""  # the call the last committed row belongs to
        self._doing = doing
        self._since = clock()
        self._status = self._status_kind = ""
        self._status_at = 0.0
        self.reason: TurnReason | None = None

    def feed(self, event: AgentEvent) -> None:
        """Takes one event in."""
        self._receipt.feed(event)
        now = self._clock()
        match event:
            case TurnStarted():
                self._do("connecting")
            case StreamStarted():
                self._begin_attempt(now)
            case AttemptProgress():
                if self._attempt:
                    self._attempt.progress(event, now)
            case ChannelToken():
                self._token(event, now)
            case ToolCallDelta():
                self._call_delta(event, now)
            case BackendToolStarted() | BackendToolCompleted():
                self._backend_tool(event, now)
            case Retrying():
                self._void_attempt()
                self._waiting = Waiting(event, now)
                if not self._screen.moving:
                    self._keep([self._waiting.row(now)])
            case Completed():
                self._end_attempt(now)
                self._do("working")
            case ToolStarted():
                self._tool_started(event, now)
            case ToolOutput():
                if tool := self._tools.get(event.call_id):
                    tool.feed(event.text, self._screen.width - 2)
            case ToolFinished():
                self._tool_finished(event, now)
            case ApprovalAsked():
                self._do("waiting for your answer")
            case ApprovalGiven():
                self._do("working")
            case UserMessage():
                if event.queued:  # else it tells the model of what is on the screen already
                    self._commit("user", user_rows(event.text, self._screen.width))
            case ImagesStripped():
                self._notice("warning", f"{event.count} images left out: {event.reason}")
            case Compacted():
                self._notice("info", f"compacted: {event.tokens_before} to {event.tokens_after} tokens")
            case Notice():
                said = f": {visible(event.parse_error[:200])}" if event.parse_error else ""
                self._notice(event.level, event.text + said)
            case Failed():
                self._failed(event.error, now)
            case TurnFinished():
                self._finished(event, now)
            case FirstToken():
                self._is_first = True
            case ResponseStarted() | ReasoningCompleted() | AttemptEnded() | DoomLoopSignal():
                pass  # the pieces themselves, the retry and the receipt tell
            case _:
                assert_never(event)
        if self._is_first and isinstance(event, ChannelToken | ToolCallDelta):
            self._is_first = False
            self._screen.hurry()
        else:
            self._screen.changed()

    def rows(self) -> list[str]:
        """The region as it should be now."""
        width, now = self._screen.width, self._clock()
        rows: list[str] = []
        if attempt := self._attempt:
            # Where the screen has become narrower, the tail has full rows now.
            self._commit_answer(attempt, attempt.text.feed("", width))
            tail = attempt.text.tail(width, max(1, self._screen.height - AROUND))
            rows += [""] * (bool(tail) and self._block not in ("", "answer")) + tail
            if attempt.thought:
                limit = min(THOUGHT_ROWS, max(1, self._screen.height // 3))
                thought = attempt.thought
                rows += thought.tail(width) if self._thinks_aloud else thought.rows(width, limit)
            rows += [call.row(width) for call in attempt.calls.values()]
        for tool in self._tools.values():
            rows += tool.rows(width)
        if self._question:
            return [*rows, paint(fit(self._question, width), "bold")]
        if self._waiting:
            return [*rows, paint(fit(self._waiting.row(now), width), "yellow")]
        return [*rows, self._status_row(width, now)]

    def introduce(self, call_id: str, rows: Sequence[str], question: str) -> None:
        """Shows what is asked: `rows` for good, and the question in place of the status."""
        self._introduced.add(call_id)
        self._last_call = call_id
        self._commit("tools", rows)
        self._question = question
        if not self._screen.moving:
            self._commit("tools", [question])
        self._screen.changed()

    def answered(self, answer: str) -> None:
        """The question is over; it stays readable with its answer, if it had one."""
        if answer:
            self._commit("tools", [fit(f"{self._question}{answer}", self._screen.width)])
        self._question = ""

    def trouble(self, text: str) -> None:
        """An error that is no event: the turn ended without one."""
        self._commit(
            "notes", [paint(row, "error") for row in wrap(f"✗ {one_line(text)}", self._screen.width)]
        )

    def stray(self, line: str) -> None:
        """Something else printed a line while the screen was ours."""
        self._notice("warning", line)

    def _width(self, indent: int = 0) -> int:
        return max(1, self._screen.width - indent)

    def _do(self, doing: str) -> None:
        self._doing, self._since = doing, self._clock()

    def _commit(self, block: str, rows: Sequence[str]) -> None:
        """Rows for good; a blank one between what is of different kinds."""
        if not rows:
            return
        between = [""] if self._block and self._block != block else []
        self._block = block
        self._screen.commit([*between, *rows])

    # The answer

    def _begin_attempt(self, now: float) -> None:
        """A new attempt: nothing of the one before it is left but what is true all the same."""
        self._void_attempt()
        self._end_wait(now, made=True)
        self._attempt = AttemptShown(self._screen.mark(), self._block, self._text(), now)

    def _text(self) -> AnswerText:
        return self._new_text(self._screen.width, self._screen.height)

    def _void_attempt(self) -> None:
        """Takes an attempt that gave no answer off the screen, or closes it off with a line that says so."""
        attempt, self._attempt = self._attempt, None
        if attempt is None or not attempt.committed:
            return
        if self._screen.erase_since(attempt.mark):
            self._block = attempt.block
            for rows in attempt.kept:
                self._commit("notes", rows)
        else:
            said = "─ the text above broke off; it is no part of the answer ─"
            self._commit("notes", [paint(row, "yellow") for row in wrap(said, self._screen.width)])

    def _end_attempt(self, now: float) -> None:
        """The attempt's rows are there to stay."""
        if attempt := self._attempt:
            self._end_thought(attempt, now)
            self._commit_answer(attempt, attempt.text.close(self._screen.width))
            self.reasoning = "\n\n".join(filter(None, (self.reasoning, *attempt.thoughts)))
            self._attempt = None

    def _token(self, event: ChannelToken, now: float) -> None:
        if (attempt := self._attempt) is None:
            return
        attempt.came(event.text, now)
        if event.channel == "reasoning":
            if attempt.thought is None:
                self._end_text(attempt)
                attempt.thought = Thought(now)
            rows = attempt.thought.feed(event.text, self._screen.width)
            if self._thinks_aloud:
                self._commit_answer(attempt, rows)
        else:
            self._end_thought(attempt, now)
            attempt.has_text = True
            self._commit_answer(attempt, attempt.text.feed(event.text, self._screen.width))

    def _end_text(self, attempt: AttemptShown) -> None:
        """Something else comes: what was said before it stands above it."""
        if attempt.has_text:
            self._commit_answer(attempt, attempt.text.close(self._screen.width))
            attempt.text, attempt.has_text = self._text(), False

    def _end_thought(self, attempt: AttemptShown, now: float) -> None:
        if attempt.thought:
            if self._thinks_aloud:
                self._commit_answer(attempt, attempt.thought.close(self._screen.width))
            else:
                self._commit_answer(attempt, [attempt.thought.summary(now)])
            attempt.thoughts.append(attempt.thought.text.strip())
            attempt.thought = None

    def _commit_answer(self, attempt: AttemptShown, rows: Sequence[str]) -> None:
        attempt.committed = attempt.committed or bool(rows)
        self._commit("answer", rows)

    def _call_delta(self, event: ToolCallDelta, now: float) -> None:
        if attempt := self._attempt:
            attempt.came(event.arguments, now)
            self._end_thought(attempt, now)
            attempt.calls.setdefault(event.index, CallShown()).feed(event, self._screen.width)

    def _backend_tool(self, event: BackendToolStarted | BackendToolCompleted, now: float) -> None:
        if (attempt := self._attempt) is None:
            return
        attempt.came("", now)
        self._end_thought(attempt, now)
        self._end_text(attempt)
        if isinstance(event, BackendToolStarted):
            row = f"● {one_line(event.name)} (run by the provider)"
        else:
            row = f"  └ {one_line(event.name)} {'failed' if event.is_error else 'done'}"
        self._commit_answer(attempt, [paint(fit(row, self._screen.width), "cyan")])

    # Tools

    def _tool_started(self, event: ToolStarted, now: float) -> None:
        self._do(f"running {one_line(event.name)}")
        self._tools[event.call_id] = ToolShown(event.name, now)
        if event.call_id not in self._introduced:
            self._commit("tools", [call_row(event.name, event.arguments, self._screen.width)])
            self._last_call = event.call_id

    def _tool_finished(self, event: ToolFinished, now: float) -> None:
        tool = self._tools.pop(event.call_id, None)
        spent_s = now - tool.began if tool else 0.0  # without the time of a question before it
        if not self._tools:
            self._do("working")
        if tool is None and event.call_id not in self._introduced:  # refused before it began
            self._commit("tools", [call_row(event.name, {}, self._screen.width)])
            self._last_call = event.call_id
        whose = "" if event.call_id == self._last_call else event.name
        if event.call_id.startswith(OWN_CALL):
            rows = whole_rows(event, self._screen.width)  # who ran it wants to read it
        else:
            rows = result_rows(event, whose, spent_s, self._screen.width)
        if event.detail and event.call_id not in self._introduced:
            rows += ["    " + row for row in diff_rows(event.detail, self._width(4), DETAIL_ROWS)]
        self._last_call = event.call_id
        self._commit("tools", rows)

    # Waits, errors and ends

    def _end_wait(self, now: float, *, made: bool) -> None:
        """The scrollback tells which retry there was, and why."""
        waiting, self._waiting = self._waiting, None
        if waiting and self._screen.moving:
            rows = wrap(waiting.line(now, made=made), self._screen.width)
            self._commit("notes", [paint(row, "yellow") for row in rows])

    def _keep(self, rows: list[str]) -> None:
        """Rows that stay, also when the attempt they came in is taken off the screen."""
        if self._attempt:
            self._attempt.kept.append(rows)
        self._commit("notes", rows)

    def _notice(self, level: Level, text: str) -> None:
        self._keep([paint(row, _LEVELS[level]) for row in wrap(one_line(text), self._screen.width)])

    def _failed(self, error: ErrorInfo, now: float) -> None:
        self._void_attempt()
        self._end_wait(now, made=False)
        width = self._screen.width
        rows = [paint(row, "error") for row in wrap(f"✗ {describe(error)}", width)]
        if error.hint:
            rows += [paint(row, "dim") for row in wrap(f"→ {one_line(error.hint)}", width)]
        self._commit("notes", rows)

    def _finished(self, event: TurnFinished, now: float) -> None:
        self.reason = event.reason
        if self._waiting is None and event.reason == "cancelled":
            self._end_attempt(now)  # what was said stays
        self._void_attempt()
        self._end_wait(now, made=False)
        self._stop_tools(now)
        self._question = ""
        if event.reason == "cancelled":
            self._commit("notes", [paint("✗ interrupted", "yellow")])
        if receipt := self._receipt.line():
            self._commit("receipt", [paint(row, "dim") for row in wrap(receipt, self._screen.width)])

    def _stop_tools(self, now: float) -> None:
        """Tools that ran when the turn ended: the last of what they said stays."""
        for tool in self._tools.values():
            stopped = paint(f"  └ stopped after {now - tool.began:.1f} s", "dim")
            self._commit("tools", [*tool.rows(self._screen.width), stopped])
        self._tools.clear()

    def cut_short(self) -> None:
        """The turn ends without its end, because the program does: what was said stays, and that it broke off."""
        if self.reason is None:
            now = self._clock()
            self._end_attempt(now)
            self._end_wait(now, made=False)
            self._stop_tools(now)
            self._commit("notes", [paint("✗ interrupted", "yellow")])

    def _status_row(self, width: int, now: float) -> str:
        if self._attempt:
            said, style = self._attempt.status(now, streamed=self._streamed)
        else:
            said, style = f"{self._doing} {now - self._since:.0f} s", "dim"
        kind = said.split(" ", 1)[0]
        if kind != self._status_kind or not 0 <= now - self._status_at < STATUS_S:
            spin = SPINNER[int(now / STATUS_S) % len(SPINNER)]
            self._status = paint(fit(f"{spin} {said}", width), style)
            self._status_kind, self._status_at = kind, now
        return self._status
