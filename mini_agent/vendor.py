"""Which vendor is asked, at which address, and with which key.

A key goes to its vendor's own server and nowhere else, unless the vendor was named in the same place as the address.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from mini_agent.core.errors import ConfigError
from mini_agent.core.profile import Profile
from mini_agent.sources import line_of
from mini_agent.wire.profiles import at, endpoint, owner, profile, shipped, speaking

DEMO = Profile(name="demo", title="demo model", model="demo")
"""The model that needs no key; it has no endpoint."""

SHORTEST_KEY = 8
"""Characters. What stands in for a key where none is needed ("x", "none") is also a word in every text."""


def known_profiles(table: object, path: Path) -> dict[str, Profile]:
    """The shipped profiles, and those of a config file, which add to them or change them. Raises ConfigError."""
    profiles = shipped()
    if not isinstance(table, dict):
        raise ConfigError(f"{path}, line {line_of(path, 'profiles')}: profiles are tables, [profiles.NAME]")
    for name, own in table.items():
        try:
            profiles[name] = profile(name, own, profiles.get(name))
        except (msgspec.ValidationError, TypeError) as error:
            unknown = re.search(r"unknown field `(\w+)`", str(error))
            near = get_close_matches(unknown[1], Profile.__struct_fields__, n=1) if unknown else []
            guess = f"; did you mean {near[0]}?" if near else ""
            line = line_of(path, unknown[1] if unknown else name)
            raise ConfigError(f"{path}, line {line}: [profiles.{name}]: {error}{guess}") from None
    return profiles


def chosen_vendor(
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


def keys_in(variables: Mapping[str, str], profiles: Mapping[str, Profile]) -> tuple[str, ...]:
    """Every key that is set, whether it is used or not: none of them may be written down."""
    keys = (value.strip() for name, value in variables.items() if _is_key(name, profiles))
    return tuple(key for key in dict.fromkeys(keys) if len(key) >= SHORTEST_KEY)


def without_keys(environ: Mapping[str, str], profiles: Mapping[str, Profile]) -> dict[str, str]:
    """What child processes get."""
    return {name: value for name, value in environ.items() if not _is_key(name, profiles)}


def _is_key(name: str, profiles: Mapping[str, Profile]) -> bool:
    return name.endswith("_API_KEY") or any(name in profile.key_env for profile in profiles.values())
