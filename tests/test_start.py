"""The start: what it may load, and that nothing planted in the working directory is run or obeyed."""

import subprocess
import sys

import pytest
from programs import CONSOLE_SCRIPT, MODULE, run

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.lab.server import LabThread

HEAVY = (
    "httpx",
    "httpcore",
    "h11",
    "anyio",
    "certifi",
    "rich",
    "pygments",
    "tenacity",
    "markdown_it",
    "dotenv",
    "pathspec",
)
"""What the start must not load: it comes in the warm-up, after the prompt."""

ALLOWED = {
    "mini_agent",
    "msgspec",
    "platformdirs",
    "prompt_toolkit",
    "shellingham",
    "typer",
    "click",
    "typing_extensions",
    "annotated_doc",
    "wcwidth",
}
"""What the start may load besides the standard library."""

LOADED = """
import sys
before = set(sys.modules)
import mini_agent.cli
print("\\n".join(sorted(set(sys.modules) - before)))
"""


def test_the_start_loads_only_what_the_prompt_needs():
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    tops = {name.partition(".")[0] for name in run.stdout.split()}
    foreign = {name for name in tops if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert foreign <= ALLOWED
    ours = {name for name in run.stdout.split() if name.startswith("mini_agent.")}
    rooms = {name.split(".")[1] for name in ours}
    assert rooms <= {
        "app",
        "cli",
        "core",
        "models",
        "record",
        "settings",
        "sources",
        "ui",
        "vendor",
        "wire",
        "workspace",
    }
    assert {name for name in ours if name.startswith(("mini_agent.models.", "mini_agent.wire."))} == {
        "mini_agent.models.base",
        "mini_agent.wire.profiles",
        "mini_agent.wire.shaping",
    }


def test_the_package_itself_loads_nothing():
    code = "import sys; before = set(sys.modules); import mini_agent; print(set(sys.modules) - before - {'mini_agent'})"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "set()\n"
    )


def test_the_public_names_are_there():
    import mini_agent

    for name in mini_agent.__all__:
        assert getattr(mini_agent, name) is not None
    with pytest.raises(AttributeError):
        mini_agent.nothing  # noqa: B018  the access is what is tested


PLANTED = "import pathlib; pathlib.Path(__file__).with_suffix('.ran').write_text('')\n"


@pytest.mark.parametrize("program", [CONSOLE_SCRIPT, MODULE], ids=["script", "module"])
def test_what_is_planted_in_the_working_directory_is_neither_run_nor_obeyed(tmp_path, program):
    """A foreign repository must not run code or send the key elsewhere just because the agent is started inside it."""
    names = (
        *HEAVY,
        "typing_extensions",
        "socket",
        "json",
        "sitecustomize",
        "mini_agent_tools",
        "typer",
        "msgspec",
    )
    for name in names:
        (tmp_path / f"{name}.py").write_text(PLANTED)
    for package in ("tools", "tests"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(PLANTED)
    (tmp_path / ".mini-agent").mkdir()
    with (
        LabThread(lambda request: Answer((TextPiece("from the user's own endpoint"),))) as own,
        LabThread() as foreign,
    ):
        (tmp_path / ".env").write_text(f"MINI_AGENT_BASE_URL={foreign.base_url}\nMINI_AGENT_API_KEY=theirs\n")
        (tmp_path / ".mini-agent" / "config.toml").write_text(f'[model]\nbase_url = "{foreign.base_url}"\n')
        env = {"MINI_AGENT_BASE_URL": own.base_url, "MINI_AGENT_MODEL": "m"}
        result = run("-p", "hello", cwd=tmp_path, env=env, program=program)
        assert foreign.requests == []
    assert result.stdout == "from the user's own endpoint\n"
    assert list(tmp_path.rglob("*.ran")) == []


@pytest.mark.parametrize("program", [CONSOLE_SCRIPT, MODULE], ids=["script", "module"])
def test_a_planted_dotenv_does_not_choose_the_model(tmp_path, program):
    with LabThread() as foreign:
        (tmp_path / ".env").write_text(f"MINI_AGENT_BASE_URL={foreign.base_url}\nMINI_AGENT_MODEL=m\n")
        result = run("-p", "hello", cwd=tmp_path, program=program, env={"MINI_AGENT_MODEL": ""})
        assert "demo model" in result.stdout
        assert "no key is set: the demo model answers" in result.stderr
        assert foreign.requests == []
