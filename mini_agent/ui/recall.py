"""What was sent before, from this folder, in whichever session: for Up, and for the search with Ctrl+R."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import FileHistory

from mini_agent.core.redact import without_keys


class FolderHistory(FileHistory):
    """A file that all sessions of a folder add to. One that can't be read or written is as good as none."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            if not self._path.exists():
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._path.touch(mode=0o600)
            super().store_string(without_keys(string))
