"""The Responses family, inwards: its events to ours and to a `Response`; no I/O.

The shapes are those of OpenAI's API reference. Everything is said up to three times: in pieces, whole with its item, and
whole with the finished response; what is missing from one of them is taken from the next, and nothing is said twice. A
response that was not streamed goes through the same code (product W6).
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mini_agent.core.events import StreamEvent
from mini_agent.core.messages import StopReason
from mini_agent.core.profile import Profile
from mini_agent.wire.assembly import Origin
from mini_agent.wire.decoding import STOP_REASONS, Decoder, bare, mapping, string
from mini_agent.wire.failures import failure_inside
from mini_agent.wire.framing import ServerSentEvent
from mini_agent.wire.loading import dumps, encodable, loads
from mini_agent.wire.pieces import key_of
from mini_agent.wire.responses_items import Item, Items, ids_of, kind_of, texts_of
from mini_agent.wire.responses_request import REASONING_ITEM, encode

__all__ = ["ResponsesDecoder", "encode"]

_BETWEEN_THOUGHTS = "\n\n"
"""Stands between the parts of a summary, which are paragraphs with headings of their own."""

_SOURCES = {
    "output_text": "text",
    "text": "text",
    "refusal": "refusal",
    "reasoning_text": "content",
    "reasoning": "content",
    "summary_text": "summary",
    "reasoning_summary_text": "summary",
}
"""Where text comes from, by the type of a part and by the middle of an event's type."""

_ENDS = frozenset({"completed", "incomplete", "failed", "cancelled"})
_ITEM_KEYS = frozenset({"id", "type", "status"})


class ResponsesDecoder(Decoder):
    """Reads the events of a response, and whole responses."""

    WHAT = "answer of the Responses API"

    def __init__(self, profile: Profile, origin: Origin, asked: Mapping[str, Any] | None = None) -> None:
        super().__init__(profile, origin, asked)
        self._doom_event = profile.doom_event
        self._labels: set[str] = set()
        self._items = Items()
        self._incomplete = False

    def decode(self, event: ServerSentEvent, n: int, t: float, *, at_end: bool = False) -> list[StreamEvent]:
        """As for `Decoder`. Frames that say the answer repeats itself are taken out first, whatever else is in them."""
        if self._doom_event is None or not self._is_doom(event, self._doom_event):
            return super().decode(event, n, t, at_end=at_end)
        if not self.ended and self.failure is None:
            self._assembler.at(n, t)
            with suppress(ValueError):  # what can't be read names no labels
                self._doom(loads(event.data))
        return self._assembler.take()

    def _is_doom(self, event: ServerSentEvent, doom_event: str) -> bool:
        if event.event == doom_event:
            return True
        if doom_event not in event.data:
            return False
        try:
            return bool(mapping(loads(event.data)).get("type") == doom_event)
        except ValueError:
            return False

    def _doom(self, frame: object) -> None:
        """The labels of a frame that were not told yet; later frames say the earlier ones again."""
        new = [label for label in _labels(encodable(frame)) if label not in self._labels]
        if new:
            self._labels.update(new)
            self._assembler.doom_loop(tuple(new))

    def _check(self, payload: dict[str, Any]) -> None:
        """An error may be the whole event, or stand in the response that failed."""
        super()._check(payload)
        response = mapping(payload.get("response"))
        if response.get("error"):
            raise failure_inside({"error": encodable(response["error"])}, self._asked)

    def _payload(self, payload: dict[str, Any], name: str) -> None:
        kind = string(payload.get("type")) or name
        if kind.startswith("response."):
            self._recognised = True
            self._event(payload, kind.removeprefix("response."))
        elif payload.get("object") == "response":
            self._recognised = True
            self._whole = self._at_end and not payload.get("status")
            self._response(payload, "")

    def _event(self, payload: dict[str, Any], kind: str) -> None:
        subject, _, what = kind.rpartition(".")
        match subject, what:
            case "function_call_arguments", "delta" | "done":
                self._arguments(payload, what)
            case "output_item", "added":
                self._item_added(payload)
            case "output_item", "done":
                given = mapping(payload.get("item"))
                ids = ids_of(given.get("id"), given.get("call_id"))
                self._item(
                    self._items.of(kind_of(string(given.get("type"))), ids, payload.get("output_index")),
                    given,
                )
            case "content_part" | "reasoning_summary_part" | "reasoning_part", "added" | "done":
                part = mapping(payload.get("part"))
                self._text(
                    payload, string(part.get("type")), part.get("text") or part.get("refusal"), what == "done"
                )
            case _, "delta":
                self._text(payload, subject, payload.get("delta"), False)
            case _, "done" if subject:
                self._text(payload, subject, payload.get("text") or payload.get("refusal"), True)
            case "", "completed" | "incomplete" | "failed" | "cancelled" | "done":
                self._response(mapping(payload.get("response")), what)
                self._end()
            case _:
                self._head(mapping(payload.get("response")))

    def _text(self, payload: dict[str, Any], named: str, text: object, whole: bool) -> None:
        """A piece of text or reasoning, or one part of it whole."""
        source = _SOURCES.get(named)
        if source is None or not isinstance(text, str) or not text:
            return
        thought = source in ("content", "summary")
        ids = ids_of(payload.get("item_id"))
        item = self._items.of("reasoning" if thought else "message", ids, payload.get("output_index"))
        index = payload.get("summary_index" if source == "summary" else "content_index")
        self._piece(item, source, key_of(index), text, whole=whole)

    def _piece(self, item: Item, source: str, index: str | None, text: str, *, whole: bool) -> None:
        if item.kind == "reasoning":
            item.source = item.source or source
            if source != item.source:
                return  # the same thoughts under another name, or their summary
        elif source == "refusal":
            self._refused = True
        if item.goes_on(source, index):
            if whole:
                self._fill(item, text, item.start)
            else:
                self._say(item, text)
        elif not (whole and ((source, index) in item.parts or self._assembler.rest(item.place, text) == "")):
            size = self._assembler.size_of(item.place)
            lead = _BETWEEN_THOUGHTS if size and item.kind == "reasoning" else ""
            item.begin(source, index, size + len(lead))
            self._say(item, lead + text)

    def _fill(self, item: Item, whole: str, start: int = 0) -> bool:
        """What is missing of an item's text, or of a part of it; False where it is another text."""
        rest = self._assembler.rest(item.place, whole, start)
        if rest:
            self._say(item, rest)
        return rest is not None

    def _say(self, item: Item, text: str) -> None:
        if item.kind == "reasoning":
            self._assembler.reasoning(text, REASONING_ITEM, item.place)
        else:
            self._assembler.text(text, item.place)

    def _arguments(self, payload: dict[str, Any], what: str) -> None:
        ids = ids_of(payload.get("item_id"), payload.get("call_id"))
        item = self._items.of("call", ids, payload.get("output_index"))
        if what == "done":
            self._call(item, payload)
        elif isinstance(fragment := payload.get("delta"), str) and fragment:
            item.streamed = True
            self._assembler.tool_call(item.place, None, None, fragment)

    def _item_added(self, payload: dict[str, Any]) -> None:
        """The beginning of an item; what it holds already counts."""
        given = mapping(payload.get("item"))
        kind = kind_of(string(given.get("type")))
        ids = ids_of(given.get("id"), given.get("call_id"))
        item = self._items.added(kind, ids, payload.get("output_index"))
        match kind:
            case "message":
                content = given.get("content")
                for place, part in enumerate(content if isinstance(content, list) else ()):
                    for text in texts_of([part]):
                        self._piece(item, "text", str(place), text, whole=False)
            case "reasoning":
                self._seal(item, given)
            case "call":
                item.given = given.get("arguments")
                self._call(item, given, whole=False)
            case "backend":
                self._started(item, given)
            case "other":
                pass

    def _item(self, item: Item, given: dict[str, Any]) -> None:
        """An item whole."""
        match item.kind:
            case "message":
                content = given.get("content")
                if isinstance(content, list) and any(mapping(part).get("refusal") for part in content):
                    self._refused = True
                self._fill(item, "".join(texts_of(content)))
            case "reasoning":
                self._seal(item, given)
                for texts in (texts_of(given.get("content")), texts_of(given.get("summary"))):
                    if texts and self._fill(item, _BETWEEN_THOUGHTS.join(texts)):
                        break
            case "call":
                self._call(item, given)
            case "backend":
                self._started(item, given)
                if not item.done:
                    failed = given.get("status") == "failed" or bool(given.get("error"))
                    self._assembler.backend_completed(item.call_id, item.name, _rest(given), is_error=failed)
            case "other":
                pass
        item.done = True

    def _seal(self, item: Item, given: dict[str, Any]) -> None:
        self._assembler.seal(
            item.place,
            field=REASONING_ITEM,
            encrypted=string(given.get("encrypted_content")) or None,
            item_id=string(given.get("id")) or None,
        )

    def _call(self, item: Item, given: dict[str, Any], *, whole: bool = True) -> None:
        """A call, whole or its beginning. Where it has no id of its own, that of its item will do."""
        spare = string(given.get("id")) if whole else ""
        item.call_id = item.call_id or string(given.get("call_id")) or spare
        name = "" if item.name else string(given.get("name"))
        item.name = item.name or name
        arguments: object = None
        if whole:
            arguments = given.get("arguments") or (None if item.streamed else item.given)
        text = arguments if isinstance(arguments, str) else dumps(arguments) if arguments else ""
        self._assembler.fill_call(item.place, item.call_id, name, text)

    def _started(self, item: Item, given: dict[str, Any]) -> None:
        """A tool that the provider runs itself."""
        if item.told:
            return
        item.told = True
        item.call_id = string(given.get("id")) or string(given.get("call_id"))
        item.name = string(given.get("name")) or string(given.get("type")).removesuffix("_call")
        self._assembler.backend_started(item.call_id, item.name, _rest(given))

    def _let_go(self) -> None:
        for item in self._items:
            if item.kind == "call" and item.given and not (item.done or item.streamed):
                self._call(item, {})
        super()._let_go()

    def _response(self, response: dict[str, Any], end: str) -> None:
        """A response that has ended. end: the word by which the event said so, "" where there was none."""
        self._head(response)
        if self._doom_event is not None:
            self._doom(response.get(self._doom_event.rpartition(".")[2]))
        status = bare(string(response.get("status")))
        if status not in _ENDS:
            status = "completed" if end == "done" else end
        if status in ("failed", "cancelled"):
            raise failure_inside(
                {"error": {"message": f"the provider reports that the response was {status}"}}
            )
        self._output(response.get("output"))
        if status == "incomplete":
            self._incomplete = True
            self._finish_reason = string(mapping(response.get("incomplete_details")).get("reason")) or status
        elif status:
            self._finish_reason = status

    def _head(self, response: dict[str, Any]) -> None:
        self._id = self._id or string(response.get("id"))
        self._model = self._model or string(response.get("model"))
        usage = mapping(response.get("usage"))
        read = mapping(usage.get("input_tokens_details"))
        self._count(
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            cached_tokens=read.get("cached_tokens"),
            cache_write_tokens=read.get("cache_write_tokens"),
            reasoning_tokens=mapping(usage.get("output_tokens_details")).get("reasoning_tokens"),
        )

    def _output(self, output: object) -> None:
        """All items of a response, most of which were streamed before."""
        if not isinstance(output, list):
            return
        listed = [one for one in output if isinstance(one, dict)]
        kinds = [kind_of(string(one.get("type"))) for one in listed]
        ids = [ids_of(one.get("id"), one.get("call_id")) for one in listed]
        items = self._items.matched(list(zip(kinds, ids, strict=True)))
        for item, given in zip(items, listed, strict=True):
            self._item(item, given)
        self._assembler.arrange([item.place for item in items])

    def _stop_reason(self) -> StopReason:
        """Of an incomplete response no call is run, whatever stopped it."""
        if self._incomplete:
            return STOP_REASONS.get(bare(self._finish_reason or ""), "max_tokens")
        return super()._stop_reason()


def _rest(item: dict[str, Any]) -> dict[str, Any]:
    """What an item says beside its id, type and status."""
    return {name: value for name, value in item.items() if name not in _ITEM_KEYS}


def _labels(frame: object) -> list[str]:
    """The labels of a doom-loop frame: all texts in lists, wherever they lie."""
    if isinstance(frame, dict):
        return [label for value in frame.values() for label in _labels(value)]
    if isinstance(frame, list):
        return [label for one in frame for label in ([one] if isinstance(one, str) else _labels(one))]
    return []
