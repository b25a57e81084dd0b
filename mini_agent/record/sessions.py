"""The journals of a state folder: where they lie, which one is meant, what is in it.

`<state folder>/sessions/<group>/<id>.jsonl`, one group for each workspace.
"""

import hashlib
import os
import random
import re
import stat
from datetime import datetime
from pathlib import Path

import msgspec

from mini_agent.core.errors import ConfigError
from mini_agent.core.messages import Message
from mini_agent.record.lines import Reader
from mini_agent.record.rebuild import State, rebuild
from mini_agent.record.records import FORMAT, Header

_SUFFIX = ".jsonl"
_SHOWN = 3
"""Of several ids that are meant, how many are named."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A journal's content. header: None where it can't be read. skipped: lines that were no records."""

    messages: tuple[Message, ...]
    state: State
    header: Header | None
    skipped: int


def new_id(now: datetime, rng: random.Random) -> str:
    """An id of a new session, like 20261130-160512-a1b2c3; by it, sessions sort by when they began.

    rng: not a seeded one, or two sessions of one second could have the same.
    """
    return f"{now:%Y%m%d-%H%M%S}-{rng.getrandbits(24):06x}"


def journal_path(state: Path, folder: Path, session: str) -> Path:
    """Where the journal of a session in the workspace `folder` lies."""
    return _group(state, folder) / f"{session}{_SUFFIX}"


def latest(state: Path, folder: Path) -> Path | None:
    """The journal of this folder that was written to last, None where there is none."""
    last: tuple[int, str] = (-1, "")
    for path in _journals(_group(state, folder)):
        try:
            found = path.stat()
        except OSError:
            continue  # gone meanwhile
        if found.st_size and stat.S_ISREG(found.st_mode):
            last = max(last, (found.st_mtime_ns, str(path)))
    return Path(last[1]) if last[1] else None


def find(state: Path, folder: Path, wanted: str) -> Path:
    """The journal of an id, or of the only id that begins so.

    Raises ConfigError where there is none, where there are several, and where it belongs to another folder.
    """
    here = _meant(_journals(_group(state, folder)), wanted)
    if len(here) == 1:
        return here[0]
    if here:
        raise ConfigError(_several(here, wanted))
    elsewhere = _meant(_journals(state / "sessions", everywhere=True), wanted)
    if not elsewhere:
        raise ConfigError(f"there is no session whose id begins with {wanted!r}")
    if len(elsewhere) > 1:
        raise ConfigError(f"{_several(elsewhere, wanted)}; none of them is of this folder")
    header = _header(elsewhere[0])
    there = header.folder if header is not None else None
    if there is not None and not Path(there).is_dir():
        return elsewhere[0]  # its folder is gone, or has another name now: this may be it
    raise ConfigError(
        f"the session {elsewhere[0].stem} belongs to another folder: "
        + (f"go on with it there, by --cwd {there}" if there else "name that with --cwd")
    )


def load(path: Path) -> Loaded:
    """The conversation that a journal holds. Raises ConfigError where there is no reading it."""
    try:
        with path.open("rb") as file:
            reader = Reader(file)
            messages, state = rebuild(reader)
    except OSError as error:
        raise ConfigError(f"the session {path.stem} can't be read: {error}") from None
    for header in reader.headers:
        _require_known(header, path)
    return Loaded(
        messages=messages,
        state=state,
        header=next(iter(reader.headers), None),
        skipped=reader.broken,
    )


def check_format(path: Path) -> None:
    """Raises ConfigError where a newer program wrote the journal; to be asked before it is opened, which mends its end."""
    header = _header(path)
    if header is not None:
        _require_known(header, path)


def _require_known(header: Header, path: Path) -> None:
    if header.format > FORMAT:
        raise ConfigError(
            f"the session {path.stem} was written by a newer mini-agent, {header.version}: use that one"
        )


def _group(state: Path, folder: Path) -> Path:
    """The folder of a workspace's journals: its name for people, a hash of its real path for certainty."""
    real = os.path.normcase(os.path.realpath(folder))
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(real).name).strip("-.")[:32] or "folder"
    return state / "sessions" / f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}"


def _journals(folder: Path, *, everywhere: bool = False) -> list[Path]:
    """Those directly in a folder, or in all the folders within it, by id."""
    return sorted(folder.glob(f"{'*/' if everywhere else ''}*{_SUFFIX}"), key=lambda path: path.stem)


def _meant(paths: list[Path], wanted: str) -> list[Path]:
    """The one with this id, else all whose id begins so."""
    exact = [path for path in paths if path.stem == wanted]
    return exact or [path for path in paths if wanted and path.stem.startswith(wanted)]


def _several(paths: list[Path], wanted: str) -> str:
    named = ", ".join(path.stem for path in paths[-_SHOWN:])
    more = " and others" if len(paths) > _SHOWN else ""
    return f"{wanted!r} is the beginning of {len(paths)} sessions' ids ({named}{more}): give more of it"


def _header(path: Path) -> Header | None:
    try:
        with path.open("rb") as file:
            return next((record for record in Reader(file) if isinstance(record, Header)), None)
    except OSError:
        return None
