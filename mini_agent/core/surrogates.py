"""Halves of UTF-16 pairs: some providers send a character outside the BMP as two JSON escapes, in two deltas at worst.

Python keeps such halves in a `str`, but nothing can encode them; text is made whole before it is shown, kept or sent.
"""


def join_surrogates(text: str) -> str:
    """`text` with split pairs joined and lone halves replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
