"""Takes secrets out of text before it reaches a screen, a log, a journal or an error."""

import re
from collections.abc import Iterable

_MARK = "[redacted]"

# Keys as providers shape them, and values that follow a header or field whose name says what they are.
_PATTERNS = (
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|key|tok)-[A-Za-z0-9_\-]{12,}"),
    re.compile(r"\bAIza[0-9A-Za-z_\-]{30,}"),
    re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/\-]{8,}=*"),
    re.compile(
        r"""(?i)((?:api[-_]?key|authorization|x-api-key|token|secret)["']?\s*[:=]\s*["']?)[^\s"',}&]{8,}"""
    ),
    re.compile(r"(://)[^/\s@]+(?=@)"),
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with `secrets`, and everything that looks like a key, a token or a password in a URL, replaced."""
    for secret in secrets:
        text = text.replace(secret, _MARK)
    for pattern in _PATTERNS:
        text = pattern.sub(lambda found: (found[1] if found.re.groups else "") + _MARK, text)
    return text
