"""Where settings are read from: folders, `config.toml`, `.env`. What they mean is `settings`' business."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from mini_agent.core.errors import ConfigError

_NO_HOME = "no home folder is known for this user: set HOME or MINI_AGENT_HOME"


def config_folder(environ: Mapping[str, str]) -> Path:
    """The user's own folder for `config.toml` and `.env`; `MINI_AGENT_HOME` replaces it."""
    home = environ.get("MINI_AGENT_HOME")
    try:
        return Path(home) if home else platformdirs.user_config_path("mini-agent", appauthor=False)
    except RuntimeError:
        raise ConfigError(_NO_HOME) from None


def home_folder() -> Path | None:
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


def read_config(path: Path) -> dict[str, Any]:
    """The tables of a config file. Raises ConfigError that names file and line."""
    try:
        return tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def line_of(path: Path, key: str) -> int:
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


def read_dotenv(path: Path) -> dict[str, str]:
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


def names_in(path: Path) -> list[str]:
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
