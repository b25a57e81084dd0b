"""What the program is set to, and where each value came from.

Layers, later ones win: defaults, `config.toml` and `.env` in the user's config folder, the environment, the command
line. A workspace's own `.env` and `.mini-agent/config.toml` are not obeyed, because a cloned repository must not be
able to send the user's key elsewhere; it is said that they were not.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import platformdirs

from mini_agent.core.errors import ConfigError
from mini_agent.core.permission import Mode
from mini_agent.core.profile import Api, Effort, Profile
from mini_agent.wire.profiles import at, endpoint, owner, profile, shipped, speaking

DEMO = Profile(name="demo", title="demo model", model="demo")
"""The model that needs no key; it has no endpoint."""

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
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
    Option("delay_ms", _Seconds, "milliseconds from 0", "DEMO_DELAY_MS"),
    Option("fail_rate", _Share, "a number from 0 to 1", "DEMO_FAIL_RATE"),
    Option("cut_rate", _Share, "a number from 0 to 1", "DEMO_CUT_RATE"),
    Option("seed", int, "a whole number", "DEMO_SEED"),
)

_NO_HOME = "no home folder is known for this user: set HOME or MINI_AGENT_HOME"
_DEADLINES = ("connect_s", "first_event_s", "idle_s", "stall_s", "total_s")
_OUR_NAMES = frozenset(option.variable for option in OPTIONS if option.variable) | {"MINI_AGENT_API_KEY"}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is set. Seconds, unless a name says otherwise; None where the part concerned has its own default.

    profile: the vendor, with the base URL and the deadlines to use. environment: for child processes, without keys.
    origins: where each value that was set came from. notices: what the user should be told before the first prompt.
    """

    folder: Path
    home: Path | None = None
    profile: Profile
    model: str
    api_key: str = ""
    mode: Mode = "ask"
    max_steps: int = 100
    max_tokens: int | None = None
    effort: Effort | None = None
    stream: bool = True
    debug_log: Path | None = None
    streams_per_client: int = 4
    streams_per_process: int = 16
    retry: Literal["default", "patient"] = "default"
    max_retries: int | None = None
    base_s: float | None = None
    cap_s: float | None = None
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


def config_folder(environ: Mapping[str, str]) -> Path:
    """The user's own folder for `config.toml` and `.env`; `MINI_AGENT_HOME` replaces it."""
    home = environ.get("MINI_AGENT_HOME")
    try:
        return Path(home) if home else platformdirs.user_config_path("mini-agent", appauthor=False)
    except RuntimeError:
        raise ConfigError(_NO_HOME) from None


def _home() -> Path | None:
    """The user's home, which `~` in a path stands for; None where the system does not know it."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where what happened is kept; `MINI_AGENT_HOME` replaces it. Raises ConfigError."""
    home = environ.get("MINI_AGENT_HOME")
    try:
        return Path(home) if home else platformdirs.user_state_path("mini-agent", appauthor=False)
    except RuntimeError:
        raise ConfigError(_NO_HOME) from None


def load(folder: Path, flags: Mapping[str, Any], environ: Mapping[str, str], *, run: str = "run") -> Settings:
    """The settings for a workspace.

    flags: the options that the command line gave, by name. run: a name of this run's own, for its debug log. Raises
    ConfigError: one line that says what is wrong and where.
    """
    home = config_folder(environ)
    config = _config(home / "config.toml")
    dotenv = _dotenv(home / ".env")
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
    profiles = _profiles(config.get("profiles", {}), home / "config.toml")
    vendor, key = _vendor(values, variables, profiles, named_with_address=named_with_address)
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
        home=_home(),
        debug_log=state_folder(environ) / "logs" / f"{run}.jsonl" if values.pop("debug", False) else None,
        profile=vendor,
        model=model,
        api_key=key,
        environment=_without_keys(environ, profiles),
        origins=origins,
        notices=tuple(_notices(folder, home, vendor, variables, profiles)),
        **values,
    )


def _without_keys(environ: Mapping[str, str], profiles: Mapping[str, Profile]) -> dict[str, str]:
    """What child processes get."""
    keys = {name for profile in profiles.values() for name in profile.key_env}
    return {
        name: value for name, value in environ.items() if name not in keys and not name.endswith("_API_KEY")
    }


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


def _config(path: Path) -> dict[str, Any]:
    """The tables of a config file. Raises ConfigError that names file and line."""
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _from_config(table: Mapping[str, Any], path: Path) -> _Layer:
    """The values of a config file. Raises ConfigError that names the file, the line and the nearest known key."""
    known = {option.key: option for option in OPTIONS if option.key}
    for key, value in _flat({name: value for name, value in table.items() if name != "profiles"}):
        option = known.get(key)
        if option is None:
            near = get_close_matches(key, known, n=1, cutoff=0.4)
            guess = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{path}, line {_line_of(path, key)}: there is no setting {key}{guess}")
        yield option, value, f"{path}, line {_line_of(path, key)}: [{key}]"


def _profiles(table: object, path: Path) -> dict[str, Profile]:
    """The shipped profiles, and those of a config file, which add to them or change them. Raises ConfigError."""
    profiles = shipped()
    if not isinstance(table, dict):
        raise ConfigError(f"{path}, line {_line_of(path, 'profiles')}: profiles are tables, [profiles.NAME]")
    for name, own in table.items():
        try:
            profiles[name] = profile(name, own, profiles.get(name))
        except (msgspec.ValidationError, TypeError) as error:
            unknown = re.search(r"unknown field `(\w+)`", str(error))
            near = get_close_matches(unknown[1], Profile.__struct_fields__, n=1) if unknown else []
            guess = f"; did you mean {near[0]}?" if near else ""
            line = _line_of(path, unknown[1] if unknown else name)
            raise ConfigError(f"{path}, line {line}: [profiles.{name}]: {error}{guess}") from None
    return profiles


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _line_of(path: Path, key: str) -> int:
    """The line on which the last part of a dotted key is set, at best guess."""
    name = key.rsplit(".", 1)[-1]
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.split("=")[0].strip().strip("\"'[]").endswith(name):
            return number
    return 1


def _text(path: Path) -> str:
    """A file's text, "" where there is none. Raises ConfigError where it can't be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from None


def _dotenv(path: Path) -> dict[str, str]:
    """The variables of a `.env` file; nothing is exported. Raises ConfigError that names file and line."""
    text = _text(path)
    if not text:
        return {}
    from io import StringIO  # noqa: PLC0415  with the next: slow to load, and most people have no such file

    from dotenv.parser import parse_stream  # noqa: PLC0415

    variables: dict[str, str] = {}
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            raise ConfigError(f"{path}, line {binding.original.line}: this is not NAME=value")
        if binding.key is not None and binding.value is not None:
            variables[binding.key] = binding.value
    return variables


def _vendor(
    values: Mapping[str, Any],
    variables: Mapping[str, str],
    profiles: Mapping[str, Profile],
    *,
    named_with_address: bool,
) -> tuple[Profile, str]:
    """The profile with its family and address, and the key to send. Raises ConfigError.

    named_with_address: whether the profile was named where the address was set, so that its key is meant for it.
    """
    named, base_url, api = values.get("profile"), values.get("base_url"), values.get("api")
    if named and named not in (*profiles, DEMO.name):
        raise ConfigError(f"there is no profile {named!r}; the profiles are {', '.join(profiles)}, demo")
    if values.get("model") == DEMO.name or named == DEMO.name:
        return DEMO, ""
    if named:
        profile = profiles[named]
    elif base_url:
        profile = owner(base_url, profiles) or profiles["generic"]
    else:
        keyed = (one for one in profiles.values() if one.base_url and _key(one.key_env, variables))
        profile = next(keyed, DEMO)
        if profile is DEMO and (values.get("model") or api):
            raise ConfigError(
                f"no key is set, so {values.get('model') or api} can't be asked: set a key such as {_first_key(profiles)},"
                " give --base-url, or take --model demo"
            )
    if profile is DEMO:
        return DEMO, ""
    own = not base_url or (named and named_with_address) or owner(base_url, profiles) is profile
    if api and not base_url:
        profile = speaking(profile, api)
    elif api:
        profile = msgspec.structs.replace(profile, api=api)
    if base_url:
        profile = at(profile, base_url)
    if not profile.base_url:
        raise ConfigError(f"profile {profile.name} needs an address: give --base-url or MINI_AGENT_BASE_URL")
    endpoint(profile)
    key = _key((*(profile.key_env if own else ()), "MINI_AGENT_API_KEY"), variables)
    if not key and not base_url and profile.key_env and profile.hosts:
        raise ConfigError(f"no key is set for {profile.name}: set {' or '.join(profile.key_env)}")
    return profile, key


def _first_key(profiles: Mapping[str, Profile]) -> str:
    return next((name for profile in profiles.values() for name in profile.key_env), "MINI_AGENT_API_KEY")


def _key(names: Sequence[str], variables: Mapping[str, str]) -> str:
    """The first key that is set, without the white space of pasting; "" where none is. Raises ConfigError for one that
    can't be sent.
    """
    for name in names:
        key = variables.get(name, "").strip()
        if key:
            if not key.isascii() or not key.isprintable() or " " in key:
                raise ConfigError(f"the key in {name} has a character that no key has: copy it again")
            return key
    return ""


def _notices(
    folder: Path, home: Path, profile: Profile, variables: Mapping[str, str], profiles: Mapping[str, Profile]
) -> Iterator[str]:
    ours = _OUR_NAMES | {name for one in profiles.values() for name in one.key_env}
    if folder.resolve() != home.resolve():
        names = [name for name in _names_in(folder / ".env") if name in ours]
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


def _names_in(path: Path) -> list[str]:
    """The variables a foreign `.env` sets, read with no more trust than it needs: names only, and only its beginning."""
    try:
        if not path.is_file():  # a pipe by that name may have nobody at its other end
            return []
        with path.open("rb") as file:
            lines = file.read(65536).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    names = (line.strip().removeprefix("export ").split("=")[0].strip() for line in lines if "=" in line)
    return list(dict.fromkeys(names))
