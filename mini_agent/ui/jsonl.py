"""stream-json: the event stream projected to one JSON object a line (the format is in the documentation,
docs/headless.md).
"""

from typing import Any, BinaryIO

import msgspec

from mini_agent.core.events import AgentEvent, Completed, ToolFinished
from mini_agent.core.messages import Response

_ONLY_WHERE_THEY_APPLY = ("n", "n_first", "n_last")


class StreamJsonWriter:
    """Writes each event as it happens. The lines are UTF-8 whatever the locale, as JSON is."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._seq = 0

    def write(self, event: AgentEvent) -> None:
        self._seq += 1
        self._out.write(msgspec.json.encode(project(event, self._seq)) + b"\n")
        self._out.flush()


def project(event: AgentEvent, seq: int) -> dict[str, Any]:
    """The public form of an event. seq: its number in this run."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    line = {"type": fields.pop("type"), "seq": seq, **fields}
    for name in _ONLY_WHERE_THEY_APPLY:
        if line.get(name, 0) is None:
            del line[name]
    if isinstance(event, Completed):
        line["response"] = _response(event.response)
    elif isinstance(event, ToolFinished):
        del line["detail"]  # for screens
    return line


def _response(response: Response) -> dict[str, Any]:
    return {
        "id": response.id,
        "model": response.model,
        "text": response.text,
        "reasoning": response.reasoning,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments, "invalid": call.invalid}
            for call in response.tool_calls
        ],
        "stop_reason": response.stop_reason,
        "raw_stop_reason": response.raw_stop_reason,
        "usage": msgspec.to_builtins(response.usage),
    }
