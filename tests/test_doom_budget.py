"""The budget for answers that repeat themselves: set in every layer, checked, and kept to by the program (product R5)."""

import pytest
from programs import run

from mini_agent.core.answers import Answer, TextPiece
from mini_agent.core.errors import ConfigError
from mini_agent.lab.server import LabThread
from mini_agent.settings import load

LOOPING = Answer(tuple(TextPiece("Let me do it. ") for _ in range(400)))


@pytest.fixture
def settled(tmp_path):
    """What is set, by a config file and by variables."""

    def settled(config="", **variables):
        (tmp_path / "config.toml").write_text(config)
        return load(tmp_path, {}, {"MINI_AGENT_HOME": str(tmp_path), **variables})

    return settled


def test_r5_it_is_set_in_the_file_and_by_a_variable(settled):
    assert settled().doom is None
    assert settled("[retry]\ndoom = 5\n").doom == 5
    assert settled("[retry]\ndoom = 5\n", MINI_AGENT_DOOM_RETRIES="0").doom == 0


@pytest.mark.parametrize("value", ["6", "-1", "many", "1.5"])
def test_r5_what_is_not_from_0_to_5_is_said(settled, value):
    with pytest.raises(ConfigError, match=r"MINI_AGENT_DOOM_RETRIES .* from 0 to 5"):
        settled(MINI_AGENT_DOOM_RETRIES=value)


@pytest.mark.parametrize(("doom", "asked"), [({}, 3), ({"MINI_AGENT_DOOM_RETRIES": "0"}, 1)])
def test_e13_the_program_keeps_to_it(tmp_path, doom, asked):
    with LabThread(lambda request: LOOPING) as lab:
        environment = {"MINI_AGENT_BASE_URL": lab.base_url, "MINI_AGENT_MODEL": "m", **doom}
        result = run("-p", "hi", cwd=tmp_path, env=environment)
        assert len(lab.requests) == asked
    assert result.returncode != 0
    assert result.stdout == ""
    assert "the model repeats itself without end: Let me do it." in result.stderr
