"""Takes secrets out of text before it reaches a screen, a log, a journal or an error."""

import re
from collections.abc import Iterable

_MARK = "[redacted]"

# Nothing but a key looks like these: what a provider puts in front, then a long run of characters that is no word.
_KEYS = (
    re.compile(
        r"\b(?:sk|pk|rk|xai)-[\w\-]{0,24}?(?:(?=[A-Za-z0-9]{0,15}\d)[A-Za-z0-9]{16}|[A-Za-z0-9]{20})[\w\-]*",
        re.ASCII,
    ),
    re.compile(r"\bgsk_[A-Za-z0-9]{20,}"),
    re.compile(r"\bAIza[0-9A-Za-z_\-]{30,}"),
    re.compile(
        r"\b([Bb]earer\s+)(?=[A-Za-z0-9._~+\-]{0,15}\d)[A-Za-z0-9._~+\-]{16}[A-Za-z0-9._~+/\-]*=*", re.ASCII
    ),
)

# Keys with less certainty, and values that follow a header or field whose name says what they are.
_PATTERNS = (
    *_KEYS,
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|key|tok)-[A-Za-z0-9_\-]{12,}"),
    re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/\-]{8,}=*"),
    re.compile(
        r"""(?i)((?:api[-_]?key|authorization|x-api-key|token|secret)["']?\s*[:=]\s*["']?)[^\s"',}&]{8,}"""
    ),
    re.compile(r"(://)[^/\s@]+(?=@)"),
)

# The end of a text that may be the beginning of one of _KEYS.
_BEGUN = re.compile(
    r"\b(?:sk?|pk?|rk?|xa?i?|gs?k?|AI?z?|(?:sk|pk|rk|xai)-[\w\-]*|gsk_\w*|AIza[\w\-]*|[Bb]earer(?:\s+[\w.~+/\-]*=*)?)\Z",
    re.ASCII,
)
_WINDOW = 512
"""Characters at the end of a text in which a key may have begun; no key is longer."""

SHORTEST = 8
"""Characters of the shortest secret that `without_keys` takes out: what a local server is given for a key is often a
word, and the text would be spoilt wherever it stands.
"""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with `secrets`, and everything that looks like a key, a token or a password in a URL, replaced.

    For what people read: rather too much than too little.
    """
    return _replaced(text, secrets, _PATTERNS)


def without_keys(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with `secrets`, and what is unmistakably a key, replaced.

    For what is given back to a model later: source code that only speaks of tokens and passwords stays as it is.
    """
    return _replaced(text, (secret for secret in secrets if len(secret) >= SHORTEST), _KEYS)


def begun_key(text: str, secrets: Iterable[str] = ()) -> int:
    """How many characters at the end of `text` may be the beginning of what `without_keys` would replace."""
    end = text[-_WINDOW:]
    found = _BEGUN.search(end)
    longest = len(end) - found.start() if found else 0
    for secret in secrets:
        if len(secret) < SHORTEST:
            continue
        for length in range(min(len(secret) - 1, len(end)), longest, -1):
            # A key stands by itself; without that, every word that ends in its first letter would count.
            if end.endswith(secret[:length]) and not end[: len(end) - length][-1:].isalnum():
                longest = length
                break
    return longest


def _replaced(text: str, secrets: Iterable[str], patterns: Iterable[re.Pattern[str]]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):  # one may be the beginning of another
        text = text.replace(secret, _MARK)
    for pattern in patterns:
        text = pattern.sub(lambda found: (found[1] if found.re.groups else "") + _MARK, text)
    return text
