"""The Messages family, inwards: its events to ours and to a `Response`; no I/O.

The shapes are those of Anthropic's API reference. The type in the data decides, not the name of the event; what is
missing, null or unknown is skipped without losing track of the other blocks. A whole message goes through the same code as
a streamed one (product W6).
"""

from collections.abc import Mapping
from typing import Any, Literal

from mini_agent.core.messages import Usage
from mini_agent.core.profile import Profile
from mini_agent.wire.assembly import Origin
from mini_agent.wire.decoding import Decoder, count, mapping, string
from mini_agent.wire.loading import loads_arguments
from mini_agent.wire.messages_request import REDACTED, THINKING, encode
from mini_agent.wire.pieces import key_of

__all__ = ["MessagesDecoder", "encode"]

_Kind = Literal["text", "thinking", "call", "backend", "any", "other"]
"""What a block is. `any`: it did not say, and its first delta will. `other`: nothing that anybody here knows."""

_KINDS: dict[str, _Kind] = {
    "": "any",
    "text": "text",
    THINKING: "thinking",
    REDACTED: "other",
    "tool_use": "call",
}

_READ = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class _Block:
    """A block of the answer. number: from 0, by appearance. given: the input of a call, where its start had one."""

    __slots__ = ("closed", "given", "id", "kind", "name", "number", "pieces", "signature")

    def __init__(self, kind: _Kind, number: int) -> None:
        self.kind = kind
        self.number = number
        self.id = ""
        self.name = ""
        self.given: Any = None
        self.pieces: list[str] = []
        self.signature = ""
        self.closed = False

    @property
    def place(self) -> str:
        """Its name in the assembler; the provider's own index may be missing, or the same for all."""
        return str(self.number)


class MessagesDecoder(Decoder):
    """Reads the events of a message, and whole messages."""

    WHAT = "answer of the Messages API"

    def __init__(self, profile: Profile, origin: Origin, asked: Mapping[str, Any] | None = None) -> None:
        super().__init__(profile, origin, asked)
        self._blocks: list[_Block] = []
        self._by_index: dict[str, _Block] = {}
        self._begun = False
        self._early: list[Any] = []
        self._read: dict[str, int] = {}
        self._handlers = {
            "message_start": self._message_start,
            "content_block_start": self._block_start,
            "content_block_delta": self._block_delta,
            "content_block_stop": self._block_stop,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "message": self._message,
        }

    def _payload(self, payload: dict[str, Any], name: str) -> None:
        kind = string(payload.get("type")) or name
        if kind == "message" and not isinstance(payload.get("content"), list | str):
            return  # the name of every event that has none
        handler = self._handlers.get(kind)
        if handler is not None:
            self._recognised = True
            handler(payload)

    def _message_start(self, payload: dict[str, Any]) -> None:
        message = mapping(payload.get("message"))
        self._begin(message)
        content = message.get("content")
        if isinstance(content, list):
            self._early = content  # nothing, unless somebody made a whole answer into a stream

    def _begin(self, message: dict[str, Any]) -> None:
        """The head of a message."""
        self._tokens(message)
        if self._begun:
            return
        self._begun = True
        self._id = string(message.get("id"))
        self._model = string(message.get("model"))
        self._assembler.response_started(self._id, self.usage or Usage())

    def _message(self, message: dict[str, Any]) -> None:
        """A message whole, in place of a stream or at its end."""
        self._begin(message)
        content = message["content"]
        self._early = content if isinstance(content, list) else [{"type": "text", "text": content}]
        self._whole = True
        self._finish(message)

    def _message_delta(self, payload: dict[str, Any]) -> None:
        self._tokens(payload)
        self._finish(mapping(payload.get("delta")))

    def _message_stop(self, payload: dict[str, Any]) -> None:
        self._tokens(payload)
        self._end()

    def _finish(self, said: dict[str, Any]) -> None:
        reason = string(said.get("stop_reason"))
        if reason and self._finish_reason is None:
            self._finish_reason = reason

    def _let_go(self) -> None:
        if not self._blocks:
            for index, block in enumerate(self._early):
                self._block_start({"index": index, "content_block": block})
                self._block_stop({"index": index})
        for open_block in self._blocks:
            self._close(open_block)
        super()._let_go()

    def _block_start(self, payload: dict[str, Any]) -> None:
        given = mapping(payload.get("content_block"))
        kind = string(given.get("type"))
        if kind.endswith("tool_result"):
            self._open("other", payload)
            self._backend_result(given, kind)
            return
        known = _KINDS.get(kind) or ("backend" if kind.endswith("tool_use") else "other")
        block = self._again(known, given, payload) or self._open(known, payload)
        if kind == REDACTED:
            data = string(given.get("data"))
            self._assembler.seal(block.place, field=REDACTED, encrypted=data or None)
        elif known in ("call", "backend"):
            block.id = string(given.get("id"))
            block.name = string(given.get("name"))
            block.given = given.get("input")
            if known == "call":
                self._assembler.tool_call(block.place, given.get("id"), given.get("name"), None)
        elif known != "other":
            self._piece(block, given)

    def _again(self, kind: _Kind, given: dict[str, Any], payload: dict[str, Any]) -> _Block | None:
        """The open call that a start names once more, None where it is another block."""
        block = self._by_index.get(key_of(payload.get("index")) or "")
        if block is None or block.closed or kind != "call" or block.kind != kind:
            return None
        return block if block.id and block.id == given.get("id") else None

    def _open(self, kind: _Kind, payload: dict[str, Any]) -> _Block:
        block = _Block(kind, len(self._blocks))
        self._blocks.append(block)
        if (key := key_of(payload.get("index"))) is not None:
            self._by_index[key] = block
        return block

    def _block_delta(self, payload: dict[str, Any]) -> None:
        delta = mapping(payload.get("delta"))
        match string(delta.get("type")):
            case "text_delta":
                kind: _Kind = "text"
            case "thinking_delta" | "signature_delta":
                kind = "thinking"
            case "input_json_delta":
                kind = "call"
            case _:
                return
        block = self._of(payload, kind)
        if block is not None:
            self._piece(block, delta)

    def _of(self, payload: dict[str, Any], kind: _Kind) -> _Block | None:
        """The block that a delta belongs to: that of its index, else the last that fits, else a new one.

        None where its block is nothing that anybody here knows.
        """
        index = key_of(payload.get("index"))
        block = self._by_index.get(index or "")
        if block is None and index is None and self._blocks:
            block = self._blocks[-1]
        if block is not None:
            if block.kind == "any":
                block.kind = kind
            if block.kind == kind or (kind == "call" and block.kind == "backend"):
                return block
            if block.kind == "other" and not block.closed:
                return None
        fitting = (one for one in reversed(self._blocks) if one.kind == kind and not one.closed)
        return next(fitting, None) or self._open(kind, payload)

    def _piece(self, block: _Block, said: dict[str, Any]) -> None:
        """What a start or a delta adds to a block."""
        text, thinking = said.get("text"), said.get("thinking")
        if block.kind == "text" and isinstance(text, str):
            self._assembler.text(text, block.place)
        elif block.kind == "thinking":
            if isinstance(thinking, str):
                self._assembler.reasoning(thinking, THINKING, block.place)
            self._sign(block, string(said.get("signature")))
        elif block.kind in ("call", "backend") and isinstance(fragment := said.get("partial_json"), str):
            block.pieces.append(fragment)
            if block.kind == "call":
                self._assembler.tool_call(block.place, None, None, fragment)

    def _sign(self, block: _Block, signature: str) -> None:
        """A signature, whole as Anthropic sends it, or in pieces, or growing."""
        if not signature:
            return
        block.signature = signature if signature.startswith(block.signature) else block.signature + signature
        self._assembler.seal(block.place, field=THINKING, signature=block.signature)

    def _block_stop(self, payload: dict[str, Any]) -> None:
        index = key_of(payload.get("index"))
        block = self._by_index.get(index or "")
        if block is None and index is None and self._blocks:
            block = self._blocks[-1]
        if block is not None:
            self._close(block)

    def _close(self, block: _Block) -> None:
        """A block is whole."""
        if block.closed:
            return
        block.closed = True
        if block.kind == "thinking":
            self._assembler.reasoning_completed(block.place, block.number)
        elif block.kind == "call" and block.given and not any(block.pieces):
            self._assembler.tool_call(block.place, None, None, block.given)
        elif block.kind == "backend":
            streamed, _ = loads_arguments("".join(block.pieces))
            self._assembler.backend_started(block.id, block.name, streamed or block.given or {})

    def _backend_result(self, given: dict[str, Any], kind: str) -> None:
        """What a tool gave that the provider ran itself. Its failure is an object of a type of its own, or a flag."""
        tool_id = string(given.get("tool_use_id"))
        name = kind.removesuffix("_tool_result")
        for block in self._blocks:
            if block.kind == "backend" and block.id == tool_id:
                self._close(block)
                name = block.name
        output = given.get("content")
        failed = string(mapping(output).get("type")).endswith("_error") or given.get("is_error") is True
        self._assembler.backend_completed(tool_id, name, output, is_error=failed)

    def _tokens(self, said: dict[str, Any]) -> None:
        """Usage, which is cumulative: what was read is told at the start, by some only at the end.

        Anthropic counts what came from the cache or went into it apart from `input_tokens`.
        """
        usage = mapping(said.get("usage"))
        for name in _READ:
            if (tokens := count(usage.get(name))) or (tokens == 0 and name not in self._read):
                self._read[name] = tokens
        if "input_tokens" in self._read:
            self._count(input_tokens=sum(self._read.values()))
        self._count(
            output_tokens=usage.get("output_tokens"),
            cached_tokens=self._read.get("cache_read_input_tokens"),
            cache_write_tokens=self._read.get("cache_creation_input_tokens"),
            reasoning_tokens=mapping(usage.get("output_tokens_details")).get("thinking_tokens"),
        )
