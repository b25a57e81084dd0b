"""What the program is set to, and where each value came from.

Layers, later ones win: defaults, `config.toml` and `.env` in the user's config folder, the environment, the command
line. A workspace's own `.env` and `.mini-agent/config.toml` are not obeyed, because a cloned repository must not be
able to send the user's key elsewhere; it is said that they were not.
"""

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from mini_agent.core.errors import ConfigError
from mini_agent.core.permission import Mode
from mini_agent.core.profile import Api, Effort, Profile
from mini_agent.sources import (
    config_folder,
    flat,
    home_folder,
    line_of,
    names_in,
    read_config,
    read_dotenv,
    state_folder,
)
from mini_agent.vendor import DEMO, chosen_vendor, keys_in, known_profiles, without_keys

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Doom = Annotated[int, msgspec.Meta(ge=0, le=5)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Rate = Annotated[float, msgspec.Meta(ge=1, le=60)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Option(NamedTuple):
    """One thing that can be set: its type, what it expects in words, its variable and its place in config.toml."""

    name: str
    type: Any
    expects: str
    variable: str | None = None
    key: str | None = None


OPTIONS = (
    Option("model", str, "a model's name", "MINI_AGENT_MODEL", "model.name"),
    Option("profile", str, "a profile's name", "MINI_AGENT_PROFILE", "model.profile"),
    Option("base_url", str, "an address", "MINI_AGENT_BASE_URL", "model.base_url"),
    Option("api", Api, "chat, responses or messages", "MINI_AGENT_API"),
    Option("effort", Effort, "off, low, medium or high", None, "model.effort"),
    Option("max_tokens", _Positive, "a whole number from 1", None, "model.max_tokens"),
    Option("mode", Mode, "ask or auto", None, "permissions.mode"),
    Option("max_steps", _Positive, "a whole number from 1", None, "limits.max_steps"),
    Option("streams_per_client", _Positive, "a whole number from 1", None, "limits.streams_per_client"),
    Option("streams_per_process", _Positive, "a whole number from 1", None, "limits.streams_per_process"),
    Option("stream", bool, "true or false"),
    Option("debug", bool, "true or false"),
    Option("retry", Literal["default", "patient"], "default or patient", None, "retry.policy"),
    Option("max_retries", _Count, "a whole number from 0", "MINI_AGENT_MAX_RETRIES", "retry.max_retries"),
    Option("doom", _Doom, "a whole number from 0 to 5", "MINI_AGENT_DOOM_RETRIES", "retry.doom"),
    Option("base_s", _Seconds, "seconds from 0", "MINI_AGENT_RETRY_BASE_S", "retry.base_s"),
    Option("cap_s", _Seconds, "seconds from 0", None, "retry.cap_s"),
    Option(
        "connect_s", _Seconds, "seconds, 0 for off", "MINI_AGENT_CONNECT_TIMEOUT_S", "deadlines.connect_s"
    ),
    Option(
        "first_event_s",
        _Seconds,
        "seconds, 0 for off",
        "MINI_AGENT_FIRST_EVENT_TIMEOUT_S",
        "deadlines.first_event_s",
    ),
    Option("idle_s", _Seconds, "seconds, 0 for off", "MINI_AGENT_IDLE_TIMEOUT_S", "deadlines.idle_s"),
    Option("stall_s", _Seconds, "seconds, 0 for off", "MINI_AGENT_STALL_TIMEOUT_S", "deadlines.stall_s"),
    Option("total_s", _Seconds, "seconds, 0 for off", "MINI_AGENT_TOTAL_TIMEOUT_S", "deadlines.total_s"),
    Option("reasoning", Literal["summary", "full"], "summary or full", None, "ui.reasoning"),
    Option("theme", str, "ansi_dark, ansi_light, or a style of pygments", None, "ui.theme"),
    Option("frame_rate", _Rate, "frames a second, from 1 to 60", None, "ui.frame_rate"),
    Option("delay_ms", _Seconds, "milliseconds from 0", "DEMO_DELAY_MS"),
    Option("fail_rate", _Share, "a number from 0 to 1", "DEMO_FAIL_RATE"),
    Option("cut_rate", _Share, "a number from 0 to 1", "DEMO_CUT_RATE"),
    Option("seed", int, "a whole number", "DEMO_SEED"),
)

_DEADLINES = ("connect_s", "first_event_s", "idle_s", "stall_s", "total_s")
_OUR_NAMES = frozenset(option.variable for option in OPTIONS if option.variable) | {"MINI_AGENT_API_KEY"}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is set. Seconds, unless a name says otherwise; None where the part concerned has its own default.

    profile: the vendor, with the base URL and the deadlines to use. secrets: every key there is, used or not. state: the
    folder of what happened: sessions, logs, what was too large for a result. run: this run's own name. environment: for
    child processes, without keys.
    origins: where each value that was set came from. notices: what the user should be told before the first prompt.
    """

    folder: Path
    home: Path | None = None
    profile: Profile
    model: str
    api_key: str = ""
    secrets: tuple[str, ...] = ()
    state: Path
    run: str
    mode: Mode = "ask"
    max_steps: int = 100
    max_tokens: int | None = None
    effort: Effort | None = None
    stream: bool = True
    debug: bool = False
    streams_per_client: int = 4
    streams_per_process: int = 16
    retry: Literal["default", "patient"] = "default"
    max_retries: int | None = None
    doom: int | None = None
    base_s: float | None = None
    cap_s: float | None = None
    reasoning: Literal["summary", "full"] = "summary"
    theme: str = "ansi_dark"
    frame_rate: float = 20
    delay_ms: float = 15
    fail_rate: float = 0
    cut_rate: float = 0
    seed: int | None = None
    environment: dict[str, str] = {}
    origins: dict[str, str] = {}
    notices: tuple[str, ...] = ()

    @property
    def is_demo(self) -> bool:
        return self.profile.name == DEMO.name

    @property
    def debug_log(self) -> Path | None:
        """Where every event is logged, if it is."""
        return self.state / "logs" / f"{self.run}.jsonl" if self.debug else None


def load(folder: Path, flags: Mapping[str, Any], environ: Mapping[str, str], *, run: str = "run") -> Settings:
    """The settings for a workspace.

    flags: the options that the command line gave, by name. run: a name of this run's own. Raises
    ConfigError: one line that says what is wrong and where.
    """
    home = config_folder(environ)
    config = read_config(home / "config.toml")
    dotenv = read_dotenv(home / ".env")
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    layers = (
        _from_config(config, home / "config.toml"),
        _from_variables(dotenv, str(home / ".env")),
        _from_variables(environ, "the environment"),
        (
            (option, flags[option.name], _flag(option))
            for option in OPTIONS
            if flags.get(option.name) is not None
        ),
    )
    ranks: dict[str, int] = {}
    for rank, layer in enumerate(layers):
        for option, value, origin in layer:
            values[option.name] = _checked(option, value, origin)
            origins[option.name] = origin
            ranks[option.name] = rank
    # An address belongs to the profile it was set with: a profile from a later layer does not take over an earlier one's.
    if ranks.get("base_url", 0) < ranks.get("profile", 0):
        values.pop("base_url", None)
    named_with_address = ranks.get("base_url", 0) == ranks.get("profile", 0)
    # An empty variable is one that is not set: it hides nothing.
    variables = {**dotenv, **{name: value for name, value in environ.items() if value.strip()}}
    profiles = known_profiles(config.get("profiles", {}), home / "config.toml")
    vendor, key = chosen_vendor(values, variables, profiles, named_with_address=named_with_address)
    deadlines = {name: values.pop(name) for name in _DEADLINES if name in values}
    vendor = msgspec.structs.replace(vendor, deadlines=msgspec.structs.replace(vendor.deadlines, **deadlines))
    model = values.pop("model", None) or vendor.model
    if not model:
        raise ConfigError(
            f"no model is named for profile {vendor.name}: give --model NAME or MINI_AGENT_MODEL"
        )
    for name in ("profile", "base_url", "api"):
        values.pop(name, None)
    return Settings(
        folder=folder,
        home=home_folder(),
        state=state_folder(environ),
        run=run,
        secrets=keys_in(variables, profiles),
        profile=vendor,
        model=model,
        api_key=key,
        environment=without_keys(environ, profiles),
        origins=origins,
        notices=tuple(_notices(folder, home, vendor, variables, profiles)),
        **values,
    )


def _flag(option: Option) -> str:
    return "--no-stream" if option.name == "stream" else f"--{option.name.replace('_', '-')}"


def _checked(option: Option, value: Any, origin: str) -> Any:
    try:
        # Not strict: variables are strings.
        return msgspec.convert(value.strip() if isinstance(value, str) else value, option.type, strict=False)
    except msgspec.ValidationError:
        name = option.variable if origin == "the environment" or origin.endswith(".env") else None
        where = f"{name} in {origin}" if name else origin
        raise ConfigError(f"{where} is {value!r}: expected {option.expects}") from None


_Layer = Iterator[tuple[Option, Any, str]]


def _from_variables(variables: Mapping[str, str], origin: str) -> _Layer:
    """An empty variable is one that is not set."""
    return (
        (option, variables[option.variable], origin)
        for option in OPTIONS
        if option.variable and variables.get(option.variable, "").strip()
    )


def _from_config(table: Mapping[str, Any], path: Path) -> _Layer:
    """The values of a config file. Raises ConfigError that names the file, the line and the nearest known key."""
    known = {option.key: option for option in OPTIONS if option.key}
    for key, value in flat({name: value for name, value in table.items() if name != "profiles"}):
        option = known.get(key)
        if option is None:
            near = get_close_matches(key, known, n=1, cutoff=0.4)
            guess = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{path}, line {line_of(path, key)}: there is no setting {key}{guess}")
        yield option, value, f"{path}, line {line_of(path, key)}: [{key}]"


def _notices(
    folder: Path, home: Path, profile: Profile, variables: Mapping[str, str], profiles: Mapping[str, Profile]
) -> Iterator[str]:
    ours = _OUR_NAMES | {name for one in profiles.values() for name in one.key_env}
    if folder.resolve() != home.resolve():
        names = [name for name in names_in(folder / ".env") if name in ours]
        if names:
            yield (
                f"this folder's .env sets {', '.join(names)}: not obeyed, because it may be somebody else's; "
                f"your own settings belong in {home / '.env'}"
            )
        if os.path.exists(folder / ".mini-agent" / "config.toml"):  # noqa: PTH110  pathlib's raises where it may not look
            yield f"this folder's .mini-agent/config.toml is not obeyed; your own is {home / 'config.toml'}"
    for name in variables:
        if name.startswith(("MINI_AGENT_", "DEMO_")) and name not in ours | {"MINI_AGENT_HOME"}:
            near = get_close_matches(name, ours, n=1)
            yield f"there is no setting {name}" + (f"; did you mean {near[0]}?" if near else "")
    if profile is DEMO and variables.get("MINI_AGENT_API_KEY", "").strip():
        yield "MINI_AGENT_API_KEY is set, but no endpoint: give --base-url or MINI_AGENT_BASE_URL"
