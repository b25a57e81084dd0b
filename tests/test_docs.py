"""What the documents show is true: their settings load, and the links between them lead somewhere."""

import re
from pathlib import Path

import pytest

from mini_agent.settings import load

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "tools" / "README.md", ROOT / "bench" / "README.md"]
)


def named(path):
    return str(path.relative_to(ROOT))


def tables():
    for document in DOCUMENTS:
        for number, block in enumerate(re.findall(r"```toml\n(.*?)```", document.read_text(), re.DOTALL), 1):
            if "[project" not in block:  # a package's own file, tested with the tools
                yield pytest.param(block, id=f"{named(document)}-{number}")


@pytest.mark.parametrize("table", list(tables()))
def test_settings_that_are_shown_load(tmp_path, table):
    (tmp_path / "config.toml").write_text(table)
    environ = {"MINI_AGENT_HOME": str(tmp_path), "DEEPSEEK_API_KEY": "k", "HOUSE_API_KEY": "k"}
    assert load(tmp_path, {}, environ).model


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_every_variable_of_the_example_is_one():
    example = (ROOT / ".env.example").read_text()
    names = re.findall(r"^#([A-Z_]+)=", example, re.MULTILINE)
    assert names
    notices = load(ROOT, {}, {"MINI_AGENT_HOME": "/nowhere", **dict.fromkeys(names, "1"), **_WORKS}).notices
    assert [notice for notice in notices if "there is no setting" in notice] == []


_WORKS = {
    "MINI_AGENT_PROFILE": "deepseek",
    "MINI_AGENT_API": "chat",
    "MINI_AGENT_BASE_URL": "http://localhost:1/v1",
    "MINI_AGENT_MODEL": "m",
    "DEMO_FAIL_RATE": "0",
    "DEMO_CUT_RATE": "0",
}
