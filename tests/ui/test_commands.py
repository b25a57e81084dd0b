import pytest

from mini_agent.ui.commands import COMMANDS, find, unknown


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("/help", ("help", "")),
        ("/help  me please ", ("help", "me please")),
        ("/nonsense", ("nonsense", "")),
        ("/", ("", "")),
        ("/usr/bin/env is broken", None),
        ("/etc/hosts", None),
        ("/a.txt", None),
        (" /help", None),
        ("say /help", None),
        ("// a comment", None),
        ("", None),
    ],
)
def test_what_is_a_command(line: str, found: tuple[str, str] | None) -> None:
    assert find(line) == found


def test_an_unknown_one_names_the_nearest() -> None:
    assert "did you mean /quit?" in unknown("qiut")
    assert ", /".join(COMMANDS) in unknown("zzz")


class Shell:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.left = False

    def say(self, text: str) -> None:
        self.said.append(text)

    def leave(self) -> None:
        self.left = True

    async def retry(self) -> None:
        self.said.append("retried")


async def test_help_names_every_command() -> None:
    shell = Shell()
    await COMMANDS["help"].run(shell, "")
    assert all(f"/{name}" in shell.said[0] for name in COMMANDS)


async def test_quit_leaves() -> None:
    shell = Shell()
    await COMMANDS["quit"].run(shell, "")
    assert shell.left


async def test_retry_goes_on() -> None:
    shell = Shell()
    await COMMANDS["retry"].run(shell, "")
    assert shell.said == ["retried"]
