"""The vendors that ship with the program, and how an endpoint's address is made from what the user gave.

A new vendor is a new table in `profiles.toml` and a test that streams its own shape; no code (docs/vendors.md).
"""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

from mini_agent.core.errors import ConfigError
from mini_agent.core.profile import Api, Profile
from mini_agent.wire.shaping import merged

_PATHS: dict[Api, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}


def shipped() -> dict[str, Profile]:
    """The shipped profiles by name, in the order in which they are tried."""
    text = files("mini_agent.wire").joinpath("profiles.toml").read_text(encoding="utf-8")
    return {name: profile(name, table) for name, table in tomllib.loads(text).items()}


def profile(name: str, table: Mapping[str, Any], base: Profile | None = None) -> Profile:
    """A profile from its table. Where there is a `base`, tables are merged with its own, the rest stands in its place.

    Raises msgspec.ValidationError, TypeError for what is no table.
    """
    known = {} if base is None else msgspec.to_builtins(base)
    made = msgspec.convert({**merged(known, {**table}), "name": name}, Profile)
    for api in made.families:
        _speaking(made, api)
    return made


def speaking(profile: Profile, api: Api) -> Profile:
    """The profile for another family that the vendor speaks. Raises ConfigError where it is not known to."""
    if api == profile.api:
        return profile
    if api not in profile.families and profile.base_url:
        raise ConfigError(f"profile {profile.name} is not known to speak {api}: give --base-url as well")
    return _speaking(profile, api)


def _speaking(profile: Profile, api: Api) -> Profile:
    """The profile with what differs in that family. Raises msgspec.ValidationError."""
    other = profile.families.get(api, {})
    try:
        return msgspec.convert({**msgspec.to_builtins(profile), **other, "api": api}, Profile)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"families.{api}: {error}") from None


def owner(base_url: str, profiles: Mapping[str, Profile]) -> Profile | None:
    """The profile whose own server `base_url` points to."""
    given = _parsed(base_url)
    return next((profile for profile in profiles.values() if _is_own(profile, given)), None)


def at(profile: Profile, base_url: str) -> Profile:
    """The profile at another address, with what its family wants there.

    A host of the vendor's own gets the path that its base URL has, where the address ends before it (no `/v1`).
    """
    profile = _speaking(profile, profile.api)
    given, own = _parsed(base_url), _parsed(profile.base_url)
    if (
        _is_own(profile, given)
        and _is_own(profile, own)
        and own.path.startswith(given.path.rstrip("/") + "/")
    ):
        base_url = urlunsplit(given._replace(path=own.path))
    return msgspec.structs.replace(profile, base_url=base_url)


def _is_own(profile: Profile, parts: SplitResult) -> bool:
    """Whether an address is the vendor's own: one of its hosts, by its scheme, at the port that goes with both.

    What is asked in clear text, or at another port of the same host, may be somebody else, and gets no key.
    """
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    if parts.scheme != urlsplit(profile.base_url).scheme:
        return False
    return f"{host}:{parts.port or usual}" in profile.hosts or (
        host in profile.hosts and parts.port in (None, usual)
    )


def shown(url: str) -> str:
    """An address as it may be told: without user, password and query, which may be secrets."""
    return re.sub(r"(//)?[^/\s]*@", r"\1", re.sub(r"[?#].*", "", url.strip(), flags=re.DOTALL))


def _parsed(url: str) -> SplitResult:
    """Raises ConfigError for what can't be taken apart, its port and its host included."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError as error:
        raise ConfigError(f"base URL {shown(url)!r} is no address: {error}") from None
    return parts


def model_list(profile: Profile) -> str:
    """The URL that lists the endpoint's models. Raises ConfigError as `endpoint` does."""
    parts = urlsplit(endpoint(profile))
    return urlunsplit(parts._replace(path=parts.path.removesuffix(_PATHS[profile.api]) + "/models"))


def endpoint(profile: Profile) -> str:
    """The URL that requests go to: the base URL joined with the family's path.

    A full endpoint and a trailing slash are accepted. Raises ConfigError for what is no http(s) address.
    """
    parts = _parsed(profile.base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"base URL {shown(profile.base_url)!r} is no address: give one such as https://host/v1"
        )
    if parts.username is not None:
        raise ConfigError(
            "the base URL holds a name or a password: put the key into MINI_AGENT_API_KEY instead"
        )
    path = parts.path.rstrip("/")
    suffix = _PATHS[profile.api]
    return urlunsplit(parts._replace(path=path if path.endswith(suffix) else path + suffix, fragment=""))
