"""The vendors that ship with the program, and how an endpoint's address is made from what the user gave.

A new vendor is a new table in `profiles.toml` and a test that streams its own shape; no code.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from urllib.parse import urlsplit, urlunsplit

import msgspec

from mini_agent.core.errors import ConfigError
from mini_agent.core.profile import Api, Profile

_PATHS: dict[Api, str] = {"chat": "/chat/completions"}


def shipped() -> dict[str, Profile]:
    """The shipped profiles by name, in the order in which they are tried."""
    text = files("mini_agent.wire").joinpath("profiles.toml").read_text(encoding="utf-8")
    return {
        name: msgspec.convert({**table, "name": name}, Profile) for name, table in tomllib.loads(text).items()
    }


def owner(base_url: str, profiles: Mapping[str, Profile]) -> Profile | None:
    """The profile whose own host `base_url` points to."""
    host = urlsplit(base_url).hostname or ""
    return next((profile for profile in profiles.values() if host in profile.hosts), None)


def endpoint(profile: Profile) -> str:
    """The URL that requests go to: the base URL joined with the family's path.

    A full endpoint and a trailing slash are accepted, and a bare host where the vendor's own base URL has a path.
    Raises ConfigError for what is no http(s) address.
    """
    url = profile.base_url.strip()
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"base URL {url!r} is no address: give one such as https://host/v1")
    path = parts.path.rstrip("/")
    suffix = _PATHS[profile.api]
    return urlunsplit(parts._replace(path=path if path.endswith(suffix) else path + suffix, fragment=""))
