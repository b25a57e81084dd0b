"""What the lab server puts on reasoning so that it can tell later whether it came back unchanged.

Providers sign reasoning (Messages) or send it encrypted (Responses); to a client both are opaque strings. These are
opaque enough, and a seal that was not made here is nobody's mistake.
"""

import base64
import binascii
import hashlib

_SIGNATURE = "lab-signature-"
_ENCLOSED = "lab-enclosed-"


def sign(text: str) -> str:
    """The signature of a text."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return _SIGNATURE + base64.urlsafe_b64encode(digest).decode()


def is_altered(text: str, signature: str) -> bool:
    """Whether the signature was made here, but not for this text."""
    return signature.startswith(_SIGNATURE) and signature != sign(text)


def enclose(text: str) -> str:
    """The text as an opaque item."""
    return _ENCLOSED + base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()


def disclose(item: str) -> str | None:
    """The text of an item that was made here; None for any other. Raises ValueError where it was altered."""
    if not item.startswith(_ENCLOSED):
        return None
    try:
        data = base64.b64decode(item.removeprefix(_ENCLOSED), altchars=b"-_", validate=True)
        return data.decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError) as problem:
        raise ValueError(str(problem)) from problem
