"""The judgement of one call: a pure function of what it does, where, and the mode (the table in the user's
documentation).

| what a call does               | ask | auto |
| ------------------------------ | --- | ---- |
| reads inside the workspace     | yes | yes  |
| reads outside it, or a secret  | ask | ask  |
| changes files inside           | ask | yes  |
| changes files outside          | ask | ask  |
| runs a command (no sandbox)    | ask | ask  |
| fetches an address             | ask | ask  |
"""

from pathlib import PurePath
from typing import Literal

from mini_agent.core.permission import Effect, Mode

Verdict = Literal["yes", "ask"]

_SECRET_NAMES = frozenset(
    {
        ".netrc",
        "_netrc",
        ".npmrc",
        ".pypirc",
        ".pgpass",
        ".htpasswd",
        ".git-credentials",
        "credentials",
        "credentials.json",
    }
)
_SECRET_SUFFIXES = frozenset({".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".tfvars"})
_GUARDED_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".aws", ".kube", ".docker"})
"""What is in them is a key, or is run by somebody later (git's hooks)."""
_NOT_SECRET = frozenset({".env.example", ".env.sample", ".env.template"})


def judge(effect: Effect, mode: Mode, *, inside: bool, secret: bool) -> tuple[Verdict, str]:
    """The verdict, and why it is asked ("" for yes).

    inside: everything it touches is in the workspace. secret: something it touches may hold a key.
    """
    if effect == "runs":
        return "ask", "it runs a command outside any sandbox"
    if effect == "fetches":
        return "ask", "it fetches from the network"
    if not inside:
        return "ask", "it touches something outside the workspace"
    if effect == "reads":
        return ("ask", "it reads what may hold secrets") if secret else ("yes", "")
    return ("yes", "") if mode == "auto" and not secret else ("ask", "it changes a file")


def is_secret(path: str) -> bool:
    """Whether what lies at `path` usually holds keys or passwords, or will be run by something else."""
    *folders, name = (part.lower() for part in PurePath(path).parts or ("",))
    if not _GUARDED_FOLDERS.isdisjoint(folders):
        return True
    if name in _NOT_SECRET:
        return False
    if name.startswith("id_"):
        return not name.endswith(".pub")
    stem, suffix = PurePath(name).stem, PurePath(name).suffix
    return (
        name.startswith(".env")
        or name in _SECRET_NAMES
        or suffix in _SECRET_SUFFIXES
        or stem in ("secret", "secrets")
    )
