"""Whether an error says that a quota is spent, by its words. Pure.

Codes and types come first and are looked up elsewhere. What looks alike is throttling: a limit of a minute counts the same
things in the same words, and there waiting helps; a limit of a day, or money, is not there again before the turn is over.
"""

import re
from collections.abc import Sequence

_MONEY = re.compile(
    # many; xAI: used all available credits or reached its monthly spending limit; Hugging Face: included credits
    r"insufficient (?:account )?(?:balance|credits?|funds)|not enough (?:balance|credits?|funds)"
    r"|(?:credit|account) balance is|(?:out of|used all available|included) credits|payment required"
    # Anthropic: your specified API usage limits, your monthly spend limit; OpenRouter: Key limit exceeded (total limit)
    r"|spend(?:ing)? limit|api usage limits|key limit exceeded"
    r"|余额不足|欠费"  # Zhipu: the balance does not suffice, the account is in arrears
)
"""No wait brings it back, whatever else is said."""

_DAILY = r"\b(?:daily|weekly|monthly)(?: [\w-]+){0,3} (?:limit|quota|cap|allowance|allocation|budget|usage|requests|tokens)"
_QUOTA = re.compile(
    r"insufficient quota|exceeded (?:your|the) (?:\w+ )?quota|quota (?:has been )?exceeded"
    rf"|usage limit (?:has been )?(?:reached|exceeded)|(?:reached|hit|exceeded) your (?:[\w-]+ ){{0,2}}usage limit|{_DAILY}"
)
"""May be said of a minute as well; then the minute is named, or a wait."""

_COUNTED = r"(?:\d|requests?|calls|tokens?) ?/ ?"
_PERIOD = re.compile(
    rf"(?P<long>per[ _-]?(?:day|week|month)|{_COUNTED}(?:day|week|month)\b|\b[rt]pd\b|{_DAILY})"
    rf"|(?P<short>per[ _-]?(?:second|minute|(?:sec|min)\b)|{_COUNTED}(?:s|sec|second|min|minute)\b"
    r"|\b(?:[rtq]p[ms]|[io]tpm)\b)"
)
"""How long a limit counts before it begins anew."""

_NAMED = re.compile(r"quota_?id\W{1,6}([\w-]+)")
"""Google's name of a quota, in a body that a gateway made a text of."""

_LEVEL = re.compile(r"\bused:? \d")
"""A limit that says how full it is drains all the time: the wait that is named with it is a true one (OpenAI, Groq)."""


def is_spent(words: str, quotas: Sequence[str], *, throttled: bool, waits: bool) -> bool:
    """Whether what is used up stays so for longer than anyone waits at a prompt.

    words: code, type and message. quotas: the names of the quotas that were exceeded (Google's). throttled: whether status
    or code say that there were too many requests. waits: whether the body names a wait.
    """
    text = words.lower()
    if _MONEY.search(text):
        return True
    period = _period([*(name.lower() for name in quotas), *_NAMED.findall(text)], text)
    quota = _QUOTA.search(text) is not None
    if period == "long":
        # Google names seconds here as well: they are those of the minute.
        return (throttled or quota) and not (waits and _LEVEL.search(text))
    return quota and period is None and not waits and "throttling" not in text


def _period(quotas: Sequence[str], text: str) -> str | None:
    """The longest of the quotas' periods; of a text, the first: what follows is advice (and what more could be had)."""
    periods = {found.lastgroup for name in quotas if (found := _PERIOD.search(name)) is not None}
    if periods:
        return "long" if "long" in periods else "short"
    found = _PERIOD.search(text)
    return None if found is None else found.lastgroup
