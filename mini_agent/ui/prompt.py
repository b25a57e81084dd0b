"""The line on which the user types, between turns: prompt_toolkit's prompt with our keys."""

import asyncio
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus, is_done
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import Output, create_output
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.output.vt100 import Vt100_Output

from mini_agent.ui.recall import FolderHistory
from mini_agent.ui.text import fit, neutralise

MENU_ROWS = 6
"""Rows for what is offered; there are none while nothing is."""

ROOMY_ROWS = 5
"""On a lower screen there is no bottom line."""

_OFFERED = re.compile(r"^/[\w-]*$|(?:^|\s)@(?:\"[^\"]*|\S*)$")

_LEAVE_HINT = "Ctrl+C again, or Ctrl+D, leaves"

CALM_S = 0.5
"""After a cancel, Ctrl+C on an empty line is taken for another push of the same for so long."""


class Prompt:
    """Asks for one message after another; remembers them.

    moving: whether the terminal understands cursor movements. rendered: called after each paint. bottom: the line under
    the prompt. history: the file of what was sent from this folder before, None for none. completer: what Tab offers, and
    a word that begins with `/` or `@` without it.
    """

    def __init__(
        self,
        source: Input,
        *,
        moving: bool,
        clock: Callable[[], float],
        rendered: Callable[[], None],
        bottom: Callable[[], str] = str,
        history: Path | None = None,
        completer: Completer | None = None,
    ) -> None:
        self._clock = clock
        self._rendered = rendered
        self._moving = moving
        self._armed = False  # the next Ctrl+C on the empty line leaves
        self._calm_until = float("-inf")
        self._history: History = InMemoryHistory() if history is None else FolderHistory(history)
        # For a dumb terminal prompt_toolkit has a prompt of its own, which it takes where it is given no output.
        with create_app_session(output=None if moving else PlainTextOutput(sys.stdout)):
            self._session: PromptSession[str] = PromptSession(
                [("bold", "> ")],
                input=source,
                output=_output() if moving else None,
                multiline=True,
                prompt_continuation="  ",
                placeholder=lambda: [("class:placeholder", _LEAVE_HINT if self._armed else "")],
                history=self._history,
                key_bindings=self._bindings(),
                completer=completer if moving else None,
                complete_while_typing=Condition(self._is_completable),
                reserve_space_for_menu=MENU_ROWS,
                enable_suspend=True,
            )
        if moving:
            self._add_bottom(bottom)
        if hasattr(signal, "SIGWINCH"):
            self._session.app.terminal_size_polling_interval = (
                None  # the signal tells, nothing needs to wake up
            )
        self._session.default_buffer.on_text_changed += self._disarm
        self._session.app.after_render += self._after_render

    def _add_bottom(self, bottom: Callable[[], str]) -> None:
        """A line under the prompt. Not prompt_toolkit's own, which asks the terminal where the cursor is: the answer may
        come late, and would be read as typed.
        """
        line = Window(
            FormattedTextControl(lambda: [("dim", fit(bottom(), self._columns() - 1))]),
            height=1,
            dont_extend_height=True,
        )
        application = self._session.app
        inner = application.layout.container
        shown = ConditionalContainer(line, ~is_done & Condition(self._has_room))
        application.layout = Layout(HSplit([inner, shown]), focused_element=self._session.default_buffer)

    def _columns(self) -> int:
        return self._session.app.output.get_size().columns

    def _has_room(self) -> bool:
        """Whether the screen has room for more than the prompt."""
        return self._session.app.output.get_size().rows >= ROOMY_ROWS

    def _is_completable(self) -> bool:
        """Whether the word under the cursor is offered something without Tab."""
        before = self._session.default_buffer.document.text_before_cursor
        return _OFFERED.search(before) is not None

    def offer_again(self) -> None:
        """There is more to offer than there was when the last key was pressed."""
        buffer = self._session.default_buffer
        chosen = buffer.complete_state is not None and buffer.complete_state.current_completion is not None
        if self._session.app.is_running and self._is_completable() and not chosen:
            buffer.cancel_completion()
            buffer.start_completion()

    async def ask(self, default: str = "", *, cancelled: bool = False) -> str:
        """The next message; `default` is what the line holds at first. Raises EOFError where the user leaves.

        cancelled: whether the user has just cancelled something.
        """
        self._armed = False
        self._calm_until = self._clock() + CALM_S if cancelled else float("-inf")
        if not self._moving:
            # That prompt is no application of ours, which would tell; it is written before anything is awaited.
            asyncio.get_running_loop().call_soon(self._rendered)
        while True:
            try:
                return await self._session.prompt_async(
                    default=default, handle_sigint=False, set_exception_handler=False
                )
            except KeyboardInterrupt:  # only from the prompt for dumb terminals: its keys go before ours
                self._interrupted()
                default = ""
            except OSError:
                raise EOFError from None  # the terminal is gone

    def _interrupted(self) -> None:
        if text := self._session.default_buffer.text:
            self._history.append_string(text)
        elif self._armed:
            raise EOFError
        self._armed = not text

    def interrupt(self) -> None:
        """SIGINT came from outside: as if Ctrl+C had been pressed."""
        if self._session.app.is_running:
            self._session.app.key_processor.send_sigint()

    def remember(self, text: str) -> None:
        """A message that was sent without the prompt is recalled like any other."""
        self._history.append_string(text)

    def _after_render(self, _: Application[str]) -> None:
        self._rendered()

    def _disarm(self, _: object) -> None:
        self._armed = False

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        typing = has_focus(DEFAULT_BUFFER)

        @bindings.add("enter", filter=typing)
        def send(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
                buffer.complete_state = None  # what was chosen stays; the next Enter sends it
            else:
                buffer.validate_and_handle()

        @bindings.add("escape", "enter", filter=typing)
        @bindings.add("c-j", filter=typing)
        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @bindings.add("c-x", "c-e", filter=typing)
        def edit(event: KeyPressEvent) -> None:
            event.current_buffer.open_in_editor()  # what comes back is looked at before it is sent

        @bindings.add(Keys.BracketedPaste, filter=typing)
        def paste(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(neutralise(event.data))

        @bindings.add("c-c", filter=typing)
        @bindings.add("<sigint>")
        def clear_or_leave(event: KeyPressEvent) -> None:
            buffer = self._session.default_buffer
            if buffer.text:
                buffer.reset(append_to_history=True)
            elif self._armed:
                event.app.exit(exception=EOFError)
            else:
                self._armed = self._clock() >= self._calm_until

        return bindings


def _output() -> Output:
    output = create_output()
    if isinstance(output, Vt100_Output):
        # It only serves menus and toolbars, and an answer that comes late would be read as typed.
        output.enable_cpr = False
    return output
