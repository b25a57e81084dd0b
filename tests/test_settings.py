"""What the program is set to: layers, the choice of vendor and key, and clear words for what can't work."""

import os
from pathlib import Path

import pytest

from mini_agent.core.errors import ConfigError
from mini_agent.settings import load
from mini_agent.wire.profiles import endpoint

DEEPSEEK = {"DEEPSEEK_API_KEY": "k-deep"}


@pytest.fixture
def settle(tmp_path):
    """load() with a home of its own and a workspace of its own."""
    home, folder = tmp_path / "home", tmp_path / "ws"
    home.mkdir()
    folder.mkdir()

    def settle(flags=None, *, env=None, config=None, dotenv=None, files=None):
        if config is not None:
            (home / "config.toml").write_text(config)
        if dotenv is not None:
            (home / ".env").write_text(dotenv)
        for name, text in (files or {}).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        return load(folder, flags or {}, {"MINI_AGENT_HOME": str(home), **(env or {})})

    return settle


def test_without_a_key_the_demo_answers(settle):
    assert settle().is_demo


def test_a_key_chooses_its_vendor(settle):
    chosen = settle(env=DEEPSEEK)
    assert (chosen.profile.name, chosen.model, chosen.api_key) == ("deepseek", "deepseek-flash", "k-deep")


def test_model_demo_wins(settle):
    assert settle({"model": "demo", "profile": "deepseek"}, env=DEEPSEEK).is_demo


def test_a_base_url_chooses_the_vendor_of_its_host_else_generic(settle):
    assert settle({"base_url": "https://api.deepseek.com/v1"}).profile.name == "deepseek"
    assert settle({"base_url": "http://127.0.0.1:1/v1", "model": "m"}).profile.name == "generic"


def test_a_vendors_key_goes_to_its_own_host_only_unless_the_vendor_was_named(settle):
    foreign = {"base_url": "https://elsewhere.example/v1", "model": "m"}
    assert settle(foreign, env=DEEPSEEK).api_key == ""
    assert settle(foreign, env={**DEEPSEEK, "MINI_AGENT_API_KEY": "k-own"}).api_key == "k-own"
    assert settle({**foreign, "profile": "deepseek"}, env=DEEPSEEK).api_key == "k-deep"
    assert (
        settle({"base_url": "https://api.deepseek.com.evil.example/", "model": "m"}, env=DEEPSEEK).api_key
        == ""
    )


def test_later_layers_win_and_origins_are_known(settle):
    config = '[model]\nname = "from-config"\nprofile = "deepseek"\n[limits]\nmax_steps = 7\n'
    layered = settle(config=config, env=DEEPSEEK)
    assert (layered.model, layered.max_steps) == ("from-config", 7)
    layered = settle(config=config, env=DEEPSEEK, dotenv="MINI_AGENT_MODEL=from-dotenv\n")
    assert layered.model == "from-dotenv"
    layered = settle(env={**DEEPSEEK, "MINI_AGENT_MODEL": "from-env"})
    assert layered.model == "from-env"
    layered = settle({"model": "from-flag"}, env={**DEEPSEEK, "MINI_AGENT_MODEL": "from-env"})
    assert (layered.model, layered.origins["model"]) == ("from-flag", "--model")


def test_the_users_own_dotenv_counts_and_exports_nothing(settle):
    chosen = settle(
        dotenv="DEEPSEEK_API_KEY=k-file\nDEMO_FAIL_RATE=0.5\nPATH=/planted\nexport DEMO_SEED='3' # note\n"
    )
    assert (chosen.api_key, chosen.fail_rate, chosen.seed) == ("k-file", 0.5, 3)
    assert "PATH" not in chosen.environment


def test_a_workspaces_own_settings_are_not_obeyed_and_that_is_said(settle):
    chosen = settle(
        env=DEEPSEEK,
        files={
            ".env": "MINI_AGENT_BASE_URL=http://evil.example\nexport DEEPSEEK_API_KEY=theirs\nOTHER=1\n",
            ".mini-agent/config.toml": "[permissions]\nmode = 'auto'\n",
        },
    )
    assert (chosen.profile.base_url, chosen.api_key, chosen.mode) == (
        "https://api.deepseek.com",
        "k-deep",
        "ask",
    )
    assert "MINI_AGENT_BASE_URL, DEEPSEEK_API_KEY" in chosen.notices[0]
    assert "config.toml" in chosen.notices[1]


def test_a_workspace_dotenv_without_a_name_of_ours_is_nobodys_business(settle):
    assert settle(files={".env": "DATABASE_URL=x\n"}).notices == ()


@pytest.mark.parametrize("content", ["\x00\xff=1", "=", "====\n", "MINI_AGENT_MODEL", "a=b" * 50000])
def test_no_foreign_dotenv_breaks_the_start(settle, content):
    assert settle(files={".env": content}).is_demo


def test_keys_are_not_in_the_environment_of_child_processes(settle):
    kept = settle(env={**DEEPSEEK, "MINI_AGENT_API_KEY": "x", "OTHER_API_KEY": "y", "LANG": "C"}).environment
    assert "LANG" in kept
    assert not [name for name in kept if name.endswith("_API_KEY")]


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"DEMO_FAIL_RATE": "2"}, "DEMO_FAIL_RATE in the environment is '2': expected a number from 0 to 1"),
        ({"DEMO_FAIL_RATE": "nan"}, "DEMO_FAIL_RATE"),
        (
            {"MINI_AGENT_MAX_RETRIES": "many"},
            "MINI_AGENT_MAX_RETRIES in the environment is 'many': expected a whole number",
        ),
        ({"MINI_AGENT_IDLE_TIMEOUT_S": "-1"}, "MINI_AGENT_IDLE_TIMEOUT_S"),
        (
            {"MINI_AGENT_PROFILE": "nobody"},
            "there is no profile 'nobody'; the profiles are deepseek, openai, anthropic,",
        ),
        ({"MINI_AGENT_BASE_URL": "localhost:8000", "MINI_AGENT_MODEL": "m"}, "is no address"),
        ({"MINI_AGENT_BASE_URL": "http://h/v1"}, "no model is named"),
        ({"MINI_AGENT_PROFILE": "generic", "MINI_AGENT_MODEL": "m"}, "needs an address"),
        ({"DEEPSEEK_API_KEY": "two words"}, "the key in DEEPSEEK_API_KEY"),
        ({"DEEPSEEK_API_KEY": "kéy"}, "the key in DEEPSEEK_API_KEY"),
    ],
)
def test_what_cant_work_is_one_line_that_names_it(settle, env, said):
    with pytest.raises(ConfigError) as raised:
        settle(env=env)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "two words" not in str(raised.value)


def test_a_key_loses_the_white_space_of_pasting(settle):
    assert settle(env={"DEEPSEEK_API_KEY": " k-deep\r\n"}).api_key == "k-deep"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("[model]\nnmae = 'x'\n", "line 2: there is no setting model.nmae; did you mean model.name?"),
        (
            "[retry]\n\nmax_retires = 1\n",
            "line 3: there is no setting retry.max_retires; did you mean retry.max_retries?",
        ),
        ("[model\n", "is not valid TOML"),
        ("[permissions]\nmode = 'yolo'\n", "[permissions.mode] is 'yolo': expected ask or auto"),
    ],
)
def test_a_config_file_that_cant_work_names_file_line_and_nearest_key(settle, config, said):
    with pytest.raises(ConfigError) as raised:
        settle(config=config)
    assert said in str(raised.value)
    assert "config.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.deepseek.com", "https://api.deepseek.com/chat/completions"),
        ("https://api.deepseek.com/", "https://api.deepseek.com/chat/completions"),
        ("https://api.deepseek.com/v1/", "https://api.deepseek.com/v1/chat/completions"),
        ("http://localhost:8080/v1/chat/completions", "http://localhost:8080/v1/chat/completions"),
        ("http://localhost:8080/v1/chat/completions/", "http://localhost:8080/v1/chat/completions"),
        ("http://[::1]:8080/v1?key=a", "http://[::1]:8080/v1/chat/completions?key=a"),
    ],
)
def test_a_base_url_is_joined_with_the_familys_path(settle, base_url, url):
    assert endpoint(settle({"base_url": base_url, "model": "m"}).profile) == url


def test_a_config_file_that_cant_be_read_is_said(settle, tmp_path):
    Path(tmp_path / "home" / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="can't be read"):
        settle()


def test_an_empty_variable_hides_nothing(settle):
    assert settle(env={"DEEPSEEK_API_KEY": " "}, dotenv="DEEPSEEK_API_KEY=k-file\n").api_key == "k-file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_in_place_of_a_foreign_dotenv_does_not_hang_the_start(settle, tmp_path):
    os.mkfifo(tmp_path / "ws" / ".env")
    assert settle().is_demo


def test_a_config_with_a_byte_order_mark_and_an_unknown_empty_table(settle):
    assert settle(config="\ufeff[limits]\nmax_steps = 3\n").max_steps == 3
    with pytest.raises(ConfigError, match="line 1: there is no setting modle"):
        settle(config="[modle]\n")


def test_a_users_own_profile_adds_to_the_shipped_ones_or_changes_them(settle):
    config = """
[profiles.mine]
base_url = "https://models.example/v1"
key_env = ["MINE_API_KEY"]
model = "m1"
headers = { x-team = "a" }
[profiles.deepseek]
model = "deepseek-v4-pro"
"""
    mine = settle(config=config, env={"MINE_API_KEY": "k-mine"})
    assert (mine.profile.name, mine.model, mine.api_key) == ("mine", "m1", "k-mine")
    assert mine.profile.headers == {"x-team": "a"}
    changed = settle(config=config, env=DEEPSEEK)
    assert (changed.model, changed.profile.base_url) == ("deepseek-v4-pro", "https://api.deepseek.com")
    with pytest.raises(ConfigError, match=r"line 1: profiles are tables"):
        settle(config="profiles = 3\n")
    with pytest.raises(ConfigError, match=r"line 3: \[profiles.mine\].*did you mean base_url"):
        settle(config="\n[profiles.mine]\nbase = 'x'\n")


OTHER = "https://other.example/v1"


@pytest.mark.parametrize(
    ("flags", "env", "config", "address"),
    [
        ({"profile": "deepseek"}, {}, f'[model]\nbase_url = "{OTHER}"\n', "https://api.deepseek.com"),
        ({"profile": "deepseek"}, {"MINI_AGENT_BASE_URL": OTHER}, None, "https://api.deepseek.com"),
        ({"base_url": OTHER}, {"MINI_AGENT_PROFILE": "deepseek"}, None, OTHER),
        ({"base_url": OTHER}, {}, '[model]\nprofile = "deepseek"\n', OTHER),
        ({}, {"MINI_AGENT_BASE_URL": OTHER}, '[model]\nprofile = "deepseek"\n', OTHER),
    ],
)
def test_t7_a_key_does_not_follow_an_address_from_another_layer(settle, flags, env, config, address):
    """Whoever names a profile in one place does not mean its key for an address that stands in another."""
    chosen = settle(flags, env={**DEEPSEEK, **env}, config=config)
    assert chosen.profile.base_url == address
    assert chosen.api_key == ("k-deep" if address == "https://api.deepseek.com" else "")


@pytest.mark.parametrize(
    "base_url",
    [
        "http://api.deepseek.com",
        "http://api.deepseek.com:80/v1",
        "https://api.deepseek.com:8443",
        "https://api.deepseek.com./v1",
        "https://sub.api.deepseek.com",
        "https://api.deepseek.com.evil.example",
    ],
)
def test_t7_a_key_is_not_sent_in_clear_text_to_another_port_or_to_a_like_name(settle, base_url):
    assert settle({"base_url": base_url, "model": "m"}, env=DEEPSEEK).api_key == ""


@pytest.mark.parametrize("base_url", ["https://API.DeepSeek.com", "https://api.deepseek.com:443/v1"])
def test_the_vendors_own_address_is_known_however_it_is_written(settle, base_url):
    assert settle({"base_url": base_url}, env=DEEPSEEK).api_key == "k-deep"


def test_t7_the_key_of_a_profile_of_ones_own_is_kept_from_child_processes(settle):
    config = "[profiles.corp]\nbase_url = 'https://corp.example/v1'\nkey_env = ['CORP_TOKEN']\nmodel = 'm'\n"
    chosen = settle(config=config, env={"CORP_TOKEN": "k-corp"})
    assert chosen.api_key == "k-corp"
    assert "CORP_TOKEN" not in chosen.environment


@pytest.mark.parametrize("flags", [{"model": "deepseek-flash"}, {"api": "messages"}])
def test_without_a_key_a_named_model_is_not_answered_by_the_demo(settle, flags):
    with pytest.raises(ConfigError, match=r"no key is set.*DEEPSEEK_API_KEY"):
        settle(flags)


def test_a_vendor_without_its_key_is_not_asked(settle):
    with pytest.raises(ConfigError, match="no key is set for openai: set OPENAI_API_KEY"):
        settle({"profile": "openai"})
    assert settle({"profile": "ollama", "model": "m"}).api_key == ""
    assert settle({"profile": "openai"}, env={"MINI_AGENT_API_KEY": "k"}).api_key == "k"


def test_a_misspelt_variable_is_noticed(settle):
    (notice,) = settle(dotenv="MINI_AGENT_MAX_RETRIE=3\n").notices
    assert "did you mean MINI_AGENT_MAX_RETRIES?" in notice


def test_a_line_of_dotenv_that_is_none_names_file_and_line(settle):
    with pytest.raises(ConfigError, match=r"\.env, line 2: this is not NAME=value"):
        settle(dotenv="A=1\nnot a line\n")


def test_a_value_that_cant_be_names_its_line(settle):
    with pytest.raises(
        ConfigError, match=r"line 2: \[retry.policy\] is 'patiant': expected default or patient"
    ):
        settle(config="[retry]\npolicy = 'patiant'\n")
