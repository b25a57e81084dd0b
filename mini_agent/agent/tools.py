"""What a tool is, which ones there are, and how a call's arguments are checked.

A tool is a small class; `tools/README.md` shows one whole. The schema a model sees is made from the parameter struct,
so the two can't differ.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Generic, TypeVar, get_args

import msgspec

from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolCall, ToolResult, ToolSpec
from mini_agent.core.permission import Effect, Preview
from mini_agent.workspace.files import Files
from mini_agent.workspace.spill import Spill

ENTRY_POINTS = "mini_agent.tools"

P = TypeVar("P", bound=msgspec.Struct)

_NULL = {"type": "null"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes as the name of a tool."""
_WRAPPING = re.compile(r"[^a-z0-9_-]+")


async def _nowhere(_: str) -> None:
    """Where live output goes when nobody watches."""


@dataclass(slots=True, frozen=True)
class ToolContext:
    """What a tool is given to work with.

    files: the workspace's files, seen safely. output: takes live output, a piece at a time. environment: the
    variables for child processes, without keys. spill: where the whole is kept of what is too large for a result, None
    where it is not kept.
    """

    files: Files
    output: Callable[[str], Awaitable[None]] = _nowhere
    environment: Mapping[str, str] = field(default_factory=dict)
    spill: Spill | None = None


class Tool(ABC, Generic[P]):
    """Something a model can ask for.

    effect: what it does to the world at worst; the permission judgement starts from it.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    effect: ClassVar[Effect]
    parameters: type[P]

    def preview(self, arguments: P, context: ToolContext) -> Preview:
        """What the call would do, made without doing it. Raises ToolError where it could not be done at all."""
        return Preview()

    @abstractmethod
    async def run(self, arguments: P, context: ToolContext) -> ToolResult:
        """Does it. Raises ToolError with a text for the model; any other exception is told to the model as well."""


def spec(tool: Tool[Any]) -> ToolSpec:
    """The tool as a model is told of it: the schema inlined, optionals without null."""
    (schema,), components = msgspec.json.schema_components([tool.parameters])
    return ToolSpec(tool.name, tool.description, _inline(schema, components))


def _inline(schema: Any, components: Mapping[str, Any]) -> Any:
    """`schema` with references resolved, titles and nulls taken out: some providers refuse each of these."""
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        # A component is not among those within itself: one that holds itself has no end when inlined.
        if name not in components:
            raise TypeError(f"{name} holds itself, which a schema without references can't say")
        others = {key: part for key, part in components.items() if key != name}
        beside = {key: part for key, part in schema.items() if key != "$ref"}
        return _inline({**components[name], **beside}, others)
    if _NULL in schema.get("anyOf", ()):
        choices = [part for part in schema["anyOf"] if part != _NULL]
        beside = {key: part for key, part in schema.items() if key != "anyOf"}
        return _inline({**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **beside}, components)
    return {
        key: _inlined_value(key, value, components)
        for key, value in schema.items()
        if key != "title" and not (key == "default" and value is None)
    }


def _inlined_value(key: str, value: Any, components: Mapping[str, Any]) -> Any:
    """The value of one keyword of a schema: schemas by name, a list of them, one, or none at all."""
    match key:
        case "properties":
            return {name: _inline(part, components) for name, part in value.items()}
        case "anyOf" | "prefixItems":
            return [_inline(part, components) for part in value]
        case "items" | "additionalProperties":
            return _inline(value, components)
        case "enum":
            return [choice for choice in value if choice is not None]
        case _:
            return value


class Registry:
    """The tools by name, in the order in which they were given."""

    def __init__(self, tools: Iterable[Tool[Any]]) -> None:
        self._tools: dict[str, Tool[Any]] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools named {tool.name}")
            self._tools[tool.name] = tool

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(spec(tool) for tool in self._tools.values())

    def effect(self, name: str) -> Effect | None:
        """What calls of that name do to the world at worst; None where there is no such tool."""
        tool = self._tools.get(name)
        return None if tool is None else tool.effect

    def find(self, call: ToolCall) -> tuple[Tool[Any], Any]:
        """The tool of a call and its checked arguments. Raises ToolError that names the problem and the way out."""
        tool = self._tools.get(call.name)
        if tool is None:
            near = _nearest(call.name, self._tools)
            guess = f" Did you mean {near}?" if near else ""
            raise ToolError(
                f"There is no tool {call.name!r}.{guess} The tools are: {', '.join(self._tools)}."
            )
        if call.invalid is not None:
            raise ToolError(
                f"The arguments of {call.name} could not be used: {call.invalid}. Send the call again."
            )
        try:
            # Not strict: models write numbers and booleans as strings.
            return tool, msgspec.convert(call.arguments, tool.parameters, strict=False)
        except msgspec.ValidationError as error:
            wanted = ", ".join(spec(tool).parameters.get("properties", {}))
            raise ToolError(
                f"The arguments of {call.name} are wrong: {error}. It takes: {wanted}. Send the call again."
            ) from error


def _nearest(called: str, names: Iterable[str]) -> str | None:
    """The tool that was probably meant by a name that is none.

    A name in wrapping of a model's own making ("functions.glob", "glob<|channel|>json") is looked for whole before
    anything is compared by likeness: the wrapping may well be longer than the name.
    """
    known = {name.lower(): name for name in names}
    for part in _WRAPPING.split(called.lower()):
        if part in known:
            return known[part]
    near = get_close_matches(called.lower(), known, n=1)
    return known[near[0]] if near else None


def discover() -> tuple[list[Tool[Any]], list[str]]:
    """The tools of every installed package that registers some, and a line for each that can't be used.

    Our own come first, so that another's of the same name can't stand in for one of them.
    """
    tools: dict[str, Tool[Any]] = {}
    problems: list[str] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=_is_foreign):
        try:
            tool = point.load()()
            _require_usable(tool, taken=tools)
            tools[tool.name] = tool
        except Exception as error:  # noqa: BLE001  somebody else's code: its failure must not take the program along
            problems.append(f"tool {point.name} of {point.value} can't be used: {error!r}")
    return list(tools.values()), problems


def _is_foreign(point: EntryPoint) -> bool:
    return point.dist is None or point.dist.name != "mini-agent"


def _require_usable(tool: object, taken: Container[str]) -> None:
    """Raises where a model could not be told of the tool, or its calls could not be judged."""
    if not isinstance(tool, Tool):
        raise TypeError("it is not a Tool")
    if not _NAME.fullmatch(tool.name):
        raise ValueError(f"providers take no name like {tool.name!r}")
    if tool.name in taken:
        raise ValueError(f"there is a tool named {tool.name} already")
    if tool.effect not in get_args(Effect):
        raise ValueError(f"{tool.effect!r} is not an effect")
    spec(tool)
