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
    {".netrc", ".npmrc", ".pypirc", "credentials", "id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"}
)
_SECRET_SUFFIXES = frozenset({".pem", ".key", ".p12", ".pfx"})
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
        return ("ask", "it reads a file that may hold secrets") if secret else ("yes", "")
    return ("yes", "") if mode == "auto" and not secret else ("ask", "it changes a file")


def is_secret(path: str) -> bool:
    """Whether a file of this name usually holds keys or passwords."""
    name = PurePath(path).name.lower()
    if name in _NOT_SECRET:
        return False
    return name.startswith(".env") or name in _SECRET_NAMES or PurePath(name).suffix in _SECRET_SUFFIXES
