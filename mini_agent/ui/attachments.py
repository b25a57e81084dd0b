"""Images that a message mentions (`@picture.png`) go out with it. Other files stay names, which the model can read."""

from pathlib import Path

from mini_agent.core.messages import Image
from mini_agent.ui.mentions import mentions

KINDS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}

MOST_BYTES = 5_000_000
"""Of one image; no provider takes much larger ones."""

MOST_IMAGES = 20


def attached(text: str, folder: Path, home: Path | None) -> tuple[list[Image], list[str]]:
    """The images that `text` mentions, in order, each once; and a line for each that can't be sent.

    folder: what paths are taken from. home: what `~` stands for.
    """
    images: list[Image] = []
    problems: list[str] = []
    for name in dict.fromkeys(mention.path for mention in mentions(text)):
        kind = KINDS.get(Path(name).suffix.lower())
        if kind is None:
            continue
        if len(images) == MOST_IMAGES:
            problems.append(f"{name} is not sent: a message takes {MOST_IMAGES} images")
            continue
        data = _read(folder / _expanded(name, home))
        if isinstance(data, str):
            problems.append(f"{name} is not sent: {data}")
        else:
            images.append(Image(kind, data))
    return images, problems


def _expanded(name: str, home: Path | None) -> Path:
    rest = name.removeprefix("~/")
    return home / rest if home is not None and rest != name else Path(name)


def _read(path: Path) -> bytes | str:
    """A file's bytes, or why there are none. Only an ordinary file is opened: a pipe would be waited for."""
    try:
        if not path.is_file():
            return "there is no such file"
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        return error.strerror or type(error).__name__
    if len(data) > MOST_BYTES:
        return f"it has more than {MOST_BYTES:,} bytes"
    return data or "it is empty"
