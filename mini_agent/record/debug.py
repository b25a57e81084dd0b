"""The log that `--debug` writes: every event as it happens, one JSON object a line, without secrets (product W11)."""

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from mini_agent.core.events import AgentEvent, ChannelToken, ToolCallDelta, ToolOutput
from mini_agent.core.redact import redact
from mini_agent.record.lines import encode


class DebugLog:
    """A file of its own for each run; made with its folder at the first event.

    secrets: what must not be in it, whoever said it. problem: why nothing is written any more, None while all is well; a
    log that can't be written ends nothing else.
    """

    def __init__(self, path: Path, secrets: Sequence[str]) -> None:
        self.path = path
        self.problem: str | None = None
        self._secrets = secrets
        self._file: BinaryIO | None = None

    def write(self, event: AgentEvent) -> None:
        """Takes one event. Pieces of an answer wait for the next other event before they reach the disk."""
        if self.problem is not None:
            return
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("xb")
            self._file.write(encode(event, lambda text: redact(text, self._secrets)))
            if not isinstance(event, ChannelToken | ToolCallDelta | ToolOutput):
                self._file.flush()
        except OSError as error:
            self.problem = f"the debug log can't be written: {error}"

    def close(self) -> None:
        """Writes what is left."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self.problem = f"the debug log can't be written: {error}"
