"""What is offered while one types, and when the workspace is listed for it."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, merge_completers
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import to_plain_text
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from stage import Clock

from mini_agent.ui import completion as completion_module
from mini_agent.ui.commands import COMMANDS, find
from mini_agent.ui.completion import FRESH_S, LISTING_S, CommandCompleter, PathCompleter
from mini_agent.ui.fuzzy import SHOWN
from mini_agent.ui.mentions import mentions


async def offered(completer: Completer, text: str) -> list[Completion]:
    return [item async for item in completer.get_completions_async(Document(text), CompleteEvent())]


async def lines(completer: Completer, text: str) -> list[str]:
    """What the line would be with each of the completions."""
    return [text[: len(text) + item.start_position] + item.text for item in await offered(completer, text)]


# Commands


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("/", list(COMMANDS)),
        ("/h", ["help"]),
        ("/qt", ["quit"]),
        ("/help", ["help"]),
        ("/zzz", []),
        ("/help ", []),
        ("/usr/bin", []),
        (" /h", []),
        ("say /h", []),
        ("x\n/h", []),
        ("", []),
    ],
)
async def test_commands_are_offered_at_the_start(text: str, names: list[str]) -> None:
    completer = CommandCompleter(COMMANDS)
    found = await lines(completer, text)
    assert found[: len(names)] == [f"/{name}" for name in names]
    assert bool(found) == bool(names)
    assert all(find(line) for line in found)


async def test_a_command_says_what_it_is_for() -> None:
    [item] = await offered(CommandCompleter(COMMANDS), "/hel")
    assert to_plain_text(item.display_meta) == COMMANDS["help"].summary


# Paths


class Workspace:
    """Lists itself, folder by folder; a test can hold it up between two."""

    def __init__(self, *folders: list[str]) -> None:
        self.folders = list(folders)
        self.begun = 0
        self.ended = 0
        self.between: Callable[[int], None] = lambda at: None

    def __call__(self) -> Iterator[list[str]]:
        self.begun += 1
        try:
            for at, folder in enumerate(self.folders):
                self.between(at)
                yield folder
        finally:
            self.ended += 1


class Gate:
    """Holds a listing up before one of its folders until it is opened."""

    def __init__(self, workspace: Workspace, at: int) -> None:
        self._at = at
        self._open = threading.Event()
        self.reached = threading.Event()
        self.asked: list[int] = []
        workspace.between = self._wait

    def _wait(self, at: int) -> None:
        self.asked.append(at)
        if at == self._at:
            self.reached.set()
            assert self._open.wait(30)

    def open(self) -> None:
        self._open.set()


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first answer waits long enough for a listing that is not held up; the tests with a gate make it shorter."""
    monkeypatch.setattr(completion_module, "FIRST_S", 30.0)


def completer_of(
    workspace: Workspace, clock: Clock | None = None, **more: Callable[[], None]
) -> PathCompleter:
    return PathCompleter(workspace, clock=clock or Clock(), **more)


async def listed(completer: PathCompleter) -> None:
    """Waits until no listing is going on."""
    while (listing := completer._listing) is not None:
        await asyncio.wait({listing.work})
        await asyncio.sleep(0)


async def test_paths_are_offered_with_their_folder() -> None:
    completer = completer_of(Workspace(["src/", "a.py"], ["src/deep/", "src/app.py"]))
    items = await offered(completer, "look at @a")
    assert [(item.text, to_plain_text(item.display), to_plain_text(item.display_meta)) for item in items] == [
        ("@a.py", "a.py", ""),
        ("@src/app.py", "app.py", "src/"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@app", ["@src/app.py"]),
        ("see (@app", ["see (@src/app.py"]),
        ("one\ntwo @app", ["one\ntwo @src/app.py"]),
        ("@src/", ["@src/app.py", '@"src/my dir/', '@"src/my file.py"', '@"src/my dir/x"']),
        ("@sr", ["@src/", "@src/app.py", '@"src/my dir/', '@"src/my file.py"', '@"src/my dir/x"']),
        ("@my f", []),
        ('@"my f', ['@"src/my file.py"']),
        ("@'my f", ['@"src/my file.py"']),
        ("@myfile", ['@"src/my file.py"']),
        ('@"src/my d', ['@"src/my dir/', '@"src/my dir/x"']),
        ('@"src/my dir/', ['@"src/my dir/x"']),
        ("@quote", ["@'qu\"ote'"]),
        ("@zzz", []),
        ("me@app", []),
        ("app", []),
        ("```\n@app", []),
        ("", []),
    ],
)
async def test_what_a_line_becomes(text: str, found: list[str]) -> None:
    workspace = Workspace(
        ["src/", 'qu"ote'], ["src/app.py", "src/my dir/", "src/my file.py"], ["src/my dir/x"]
    )
    assert await lines(completer_of(workspace), text) == found


async def test_names_that_cannot_be_shown_or_typed_are_not_offered() -> None:
    odd = ["a\x1b[31m", "a\nb", "a\tb", "a\udcff", "a\u202eb", "a`b", "a'\"b"]
    fine = ["aé.py", "a\u202fPM.png", "a👩\u200d💻", "a b"]
    completer = completer_of(Workspace([*odd, *fine], ["a.py"]))
    assert {item[1:].strip('"') for item in await lines(completer, "@a")} == {*fine, "a.py"}


@given(
    st.lists(
        st.text(st.sampled_from("ab ./'\"`\n\x1b()é,"), min_size=1, max_size=6), unique=True, max_size=SHOWN
    )
)
def test_each_file_that_is_offered_is_mentioned_by_what_is_inserted(paths: list[str]) -> None:
    async def play() -> None:
        completer = completer_of(Workspace(paths))
        for line in await lines(completer, "see @"):
            if line.endswith("/") or (line[5] in "\"'" and line[-1] != line[5]):
                continue  # a folder, in which one goes on
            assert mentions(line)[0].path in paths

    asyncio.run(play())


async def test_what_was_mentioned_of_late_comes_first() -> None:
    completer = completer_of(Workspace(["a.py", "b/", "c/"], ["b/a.py"], ["c/a.py"]))
    completer.remember(["b/a.py", "c/a.py"])
    assert await lines(completer, "@a.py") == ["@c/a.py", "@b/a.py", "@a.py"]
    completer.remember(["b/a.py"])
    assert (await lines(completer, "@"))[:3] == ["@b/a.py", "@c/a.py", "@a.py"]


# When it is listed


async def test_nothing_is_listed_before_an_at_is_typed() -> None:
    workspace = Workspace(["a"])
    completer = completer_of(workspace)
    for text in "", "a", "a@b", "/he":
        assert await offered(completer, text) == []
    assert workspace.begun == 0
    await offered(completer, "@")
    assert workspace.begun == 1


async def test_it_is_listed_anew_when_it_is_old() -> None:
    clock, workspace = Clock(), Workspace(["a1"])
    completer = completer_of(workspace, clock)
    assert await lines(completer, "@a") == ["@a1"]
    workspace.folders = [["a2"]]
    clock.now += FRESH_S - 0.1
    assert await lines(completer, "@a") == ["@a1"]
    assert workspace.begun == 1
    clock.now += 0.2
    assert await lines(completer, "@a") == ["@a1"]  # at once, from what is known; the new one is on its way
    await listed(completer)
    assert await lines(completer, "@a") == ["@a2"]
    assert workspace.begun == 2


async def test_a_listing_that_took_long_serves_longer() -> None:
    clock, workspace = Clock(), Workspace(["a"])
    workspace.between = lambda at: setattr(clock, "now", clock.now + 3)
    completer = completer_of(workspace, clock)
    for wait, begun in (0, 1), (29, 1), (2, 2):
        clock.now += wait
        await offered(completer, "@")
        await listed(completer)
        assert workspace.begun == begun


async def test_a_listing_that_does_not_end_is_ended() -> None:
    clock, workspace = Clock(), Workspace(*([f"a{number}"] for number in range(1000)))
    workspace.between = lambda at: setattr(clock, "now", clock.now + 1)
    completer = completer_of(workspace, clock)
    assert len(await lines(completer, "@a")) == LISTING_S
    assert workspace.ended == 1


async def test_the_first_answer_is_of_what_there_is_and_it_is_told_when_there_is_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completion_module, "FIRST_S", 0.0)
    workspace = Workspace(["a1"], ["a2"], ["a3"], ["a4"])
    gate = Gate(workspace, at=3)
    refreshed = asyncio.Event()
    completer = completer_of(workspace, refreshed=refreshed.set)
    await offered(completer, "@a")
    await asyncio.to_thread(gate.reached.wait)
    assert await lines(completer, "@a") == ["@a1", "@a2", "@a3"]
    assert not refreshed.is_set()
    gate.open()
    await refreshed.wait()
    assert await lines(completer, "@a") == ["@a1", "@a2", "@a3", "@a4"]
    assert workspace.begun == 1


async def test_nobody_is_told_of_a_listing_whose_answer_was_whole() -> None:
    told: list[str] = []
    completer = completer_of(Workspace(["a"]), refreshed=lambda: told.append(""))
    await offered(completer, "@a")
    await listed(completer)
    assert told == []


async def test_no_listing_goes_on_behind_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_module, "FIRST_S", 0.0)
    workspace = Workspace(["a1"], ["a2"], ["a3"])
    gate = Gate(workspace, at=1)
    told: list[str] = []
    completer = completer_of(workspace, refreshed=lambda: told.append(""))
    await offered(completer, "@a")
    await asyncio.to_thread(gate.reached.wait)
    assert completer._listing is not None
    work = completer._listing.work
    completer.stop()
    completer.stop()
    gate.open()
    await work
    await asyncio.sleep(0)
    assert workspace.ended == 1
    assert gate.asked == [0, 1]
    workspace.between = lambda at: None
    monkeypatch.setattr(completion_module, "FIRST_S", 30.0)
    assert await lines(completer, "@a") == ["@a1", "@a2", "@a3"]  # the next prompt's is whole
    assert told == []


async def test_what_is_known_outlives_a_prompt() -> None:
    workspace = Workspace(["a"])
    completer = completer_of(workspace)
    await offered(completer, "@a")
    completer.stop()
    assert await lines(completer, "@a") == ["@a"]
    assert workspace.begun == 1


# At a prompt


@pytest.mark.parametrize(("text", "sent"), [("/he", "/help"), ("see @app", "see @src/app.py")])
async def test_a_prompt_completes_with_tab(text: str, sent: str) -> None:
    paths = completer_of(Workspace(["src/"], ["src/app.py"]))
    with create_pipe_input() as source, create_app_session(input=source, output=DummyOutput()):
        session: PromptSession[str] = PromptSession(
            completer=merge_completers([CommandCompleter(COMMANDS), paths]), complete_while_typing=True
        )
        shown = asyncio.Event()

        def look(_: object) -> None:
            if (state := session.default_buffer.complete_state) and state.completions:
                shown.set()

        session.default_buffer.on_completions_changed += look
        answer = asyncio.ensure_future(session.prompt_async())
        source.send_text(text)
        await shown.wait()
        source.send_text("\t\r")
        assert await answer == sent
