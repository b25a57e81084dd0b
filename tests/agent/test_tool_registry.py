"""What a model is told of the tools, and what becomes of the calls it makes."""

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_agent.agent.tools import ENTRY_POINTS, Registry, Tool, discover, spec
from mini_agent.core.errors import ToolError
from mini_agent.core.messages import ToolCall, ToolResult
from mini_agent.core.permission import Preview

BUILT_IN = {"read_file", "write_file", "edit_file", "list_dir", "run_bash"}


class Place(msgspec.Struct):
    title: str
    line: int | None = None


class Arguments(msgspec.Struct):
    """Not for the model to read."""

    path: Annotated[str, msgspec.Meta(description="the path")]
    title: str
    place: Annotated[Place, msgspec.Meta(description="where")]
    places: list[Place | None] = []
    count: Annotated[int, msgspec.Meta(ge=1, description="how many")] | None = None
    ratio: float | None = None
    strict: bool | None = None
    mixed: int | str | None = None
    word: Literal["a", "b", None] = None
    other: Annotated[Place | None, msgspec.Meta(description="elsewhere")] = None
    table: dict[str, int | None] = {}
    pair: tuple[int, Place | None] | None = None
    default: str = "x"
    properties: dict[str, Any] = {}


class Probe(Tool[Arguments]):
    name = "probe_file"
    description = "Probes."
    effect = "reads"
    parameters = Arguments

    async def run(self, arguments: Arguments, context: Any) -> ToolResult:
        return ToolResult("")


def tool_named(called: str, struct: type[msgspec.Struct] = Place) -> Tool[Any]:
    class Named(Tool[Any]):
        name: ClassVar[str] = called
        description = ""
        effect = "reads"
        parameters = struct

        async def run(self, arguments: Any, context: Any) -> ToolResult:
            return ToolResult("")

    return Named()


GIVEN = {"path": "a", "title": "t", "place": {"title": "p"}}


def find(**arguments: Any) -> Any:
    return Registry([Probe()]).find(ToolCall("1", "probe_file", {**GIVEN, **arguments}))[1]


def refusal(call: ToolCall, *tools: Tool[Any]) -> str:
    with pytest.raises(ToolError) as caught:
        Registry(tools or (Probe(),)).find(call)
    return str(caught.value)


def keywords(schema: Any) -> set[str]:
    """Every schema keyword in use; what is named under `properties` is no keyword."""
    if isinstance(schema, list):
        return set().union(*map(keywords, schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for key, value in schema.items():
        found |= set().union(*map(keywords, value.values())) if key == "properties" else keywords(value)
    return found


def test_the_schema_has_neither_references_nor_titles_nor_nulls() -> None:
    schema = spec(Probe()).parameters
    assert not keywords(schema) & {"$ref", "$defs", "title", "definitions", "allOf", "oneOf"}
    assert "null" not in json.dumps(schema)
    json.dumps(schema, allow_nan=False)


def test_the_schema_says_what_the_struct_says() -> None:
    schema = spec(Probe()).parameters
    assert schema["type"] == "object"
    assert schema["required"] == ["path", "title", "place"]
    properties = schema["properties"]
    assert list(properties) == list(Arguments.__struct_fields__)
    place = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "line": {"type": "integer"}},
        "required": ["title"],
    }
    for name, description in ("place", "where"), ("other", "elsewhere"):
        assert {**properties[name], "description": description} == properties[name]
        assert {**place, **properties[name]} == properties[name] | {k: properties[name][k] for k in place}
    assert properties["place"]["properties"] == place["properties"]
    assert properties["places"]["items"]["properties"] == place["properties"]
    assert properties["count"] == {"type": "integer", "minimum": 1, "description": "how many"}
    assert properties["ratio"] == {"type": "number"}
    assert properties["strict"] == {"type": "boolean"}
    assert properties["mixed"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert properties["word"] == {"enum": ["a", "b"]}
    assert properties["table"]["additionalProperties"] == {"type": "integer"}
    assert properties["pair"]["prefixItems"][1]["required"] == ["title"]
    assert properties["default"] == {"type": "string", "default": "x"}


def test_a_struct_that_holds_itself_is_refused_where_it_is_found() -> None:
    with pytest.raises(TypeError, match="Tree holds itself"):
        spec(tool_named("tree", Tree))


class Tree(msgspec.Struct):
    children: list["Tree"] = []


class Twice(msgspec.Struct):
    first: Place
    second: Place


def test_one_struct_in_two_places_is_inlined_in_both() -> None:
    properties = spec(tool_named("twice", Twice)).parameters["properties"]
    assert properties["first"] == properties["second"]


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("count", "10", 10),
        ("count", 10.0, 10),
        ("count", None, None),
        ("ratio", "0.5", 0.5),
        ("ratio", 3, 3.0),
        ("strict", "true", True),
        ("strict", 0, False),
        ("mixed", "12 apples", "12 apples"),
    ],
)
def test_g19_what_models_write_for_numbers_and_booleans_is_taken(name: str, given: Any, taken: Any) -> None:
    value = getattr(find(**{name: given}), name)
    assert value == taken
    assert type(value) is type(taken)


def test_g19_an_argument_nobody_asked_for_is_left_aside() -> None:
    assert find(colour="red").path == "a"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("count", "ten"),
        ("count", 0),
        ("count", 1.5),
        ("count", []),
        ("ratio", "much"),
        ("strict", "perhaps"),
        ("path", 5),
        ("path", None),
        ("path", {"name": "x"}),
        ("word", "c"),
        ("places", "x"),
    ],
)
def test_g19_a_bad_argument_is_refused_by_its_name(name: str, given: Any) -> None:
    text = refusal(ToolCall("1", "probe_file", {**GIVEN, name: given}))
    assert f"$.{name}" in text or f"`{name}`" in text
    assert "probe_file" in text
    assert "path, title, place" in text


def test_g19_a_bad_argument_within_another_is_refused_by_its_path() -> None:
    assert "$.place.line" in refusal(
        ToolCall("1", "probe_file", {**GIVEN, "place": {"title": "p", "line": "no"}})
    )


def test_g19_a_missing_argument_is_named() -> None:
    assert "`title`" in refusal(ToolCall("1", "probe_file", {"path": "a", "place": {"title": "p"}}))


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING |= st.lists(ANYTHING, max_size=3) | st.dictionaries(st.text(max_size=5), ANYTHING, max_size=3)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from([*Arguments.__struct_fields__, "x", ""]), ANYTHING))
def test_g19_arguments_of_any_kind_are_taken_or_refused(arguments: dict[str, Any]) -> None:
    try:
        _, checked = Registry([Probe()]).find(ToolCall("1", "probe_file", arguments))
    except ToolError:
        return
    assert isinstance(checked, Arguments)


@pytest.mark.parametrize("name", ["probefile", "Probe_File", "probe-file", "probe_files", "PROBE_FILE"])
def test_an_unknown_tool_is_told_the_near_name(name: str) -> None:
    text = refusal(ToolCall("1", name, {}))
    assert repr(name) in text
    assert "Did you mean probe_file?" in text


@pytest.mark.parametrize("name", ["", "weather", "\ud800"])
def test_an_unknown_tool_without_a_near_name_is_told_what_there_is(name: str) -> None:
    text = refusal(ToolCall("1", name, {}), Probe(), tool_named("zzz"))
    assert "Did you mean" not in text
    assert "probe_file, zzz" in text
    text.encode()


def test_arguments_that_were_no_json_are_refused_with_the_reason() -> None:
    text = refusal(ToolCall("1", "probe_file", {}, invalid="line 1: expected a comma"))
    assert "line 1: expected a comma" in text
    assert "Send the call again" in text


def test_a_tool_without_a_preview_touches_nothing() -> None:
    assert Probe().preview(find(), None) == Preview()


def test_tools_keep_their_order() -> None:
    assert [one.name for one in Registry([tool_named("b"), tool_named("a")]).specs] == ["b", "a"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools named same"):
        Registry([tool_named("same"), tool_named("same")])


# Entry points.


def test_the_built_in_tools_are_found_as_anyone_elses_would_be() -> None:
    tools, problems = discover()
    assert {tool.name for tool in tools} >= BUILT_IN
    assert problems == []


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a package with entry points where Python finds it."""

    def install(package: str, source: str, points: dict[str, str]) -> None:
        (tmp_path / f"{package}.py").write_text(source)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {package}:{what}" for name, what in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{ENTRY_POINTS}]", *lines]) + "\n")

    monkeypatch.syspath_prepend(tmp_path)
    return install


THIRD_PARTY = """
import msgspec
from mini_agent.agent.tools import Tool
from mini_agent.core.messages import ToolResult

class Nothing(msgspec.Struct):
    pass

class Tree(msgspec.Struct):
    children: list["Tree"] = []

class Good(Tool[Nothing]):
    name = "third_party"
    description = "From elsewhere."
    effect = "reads"
    parameters = Nothing
    async def run(self, arguments, context):
        return ToolResult("ran")

class Shadow(Good):
    name = "read_file"

class Endless(Good):
    name = "endless"
    parameters = Tree

class NoTool:
    name = "no_tool"

class Unfinished(Tool[Nothing]):
    pass

class Nameless(Good):
    name = ""

class Harmless(Good):
    name = "harmless"
    effect = "nothing"

class Spaced(Good):
    name = "word count"

class Undescribed(Tool[Nothing]):
    name = "undescribed"
    async def run(self, arguments, context):
        return ToolResult("ran")

class Fails(Good):
    def __init__(self):
        raise ImportError("needs a library")
"""


def test_a_tool_of_another_package_is_found(installed: Any) -> None:
    installed("third_party_tools", THIRD_PARTY, {"third_party": "Good"})
    tools, problems = discover()
    assert {tool.name for tool in tools} >= {*BUILT_IN, "third_party"}
    assert problems == []
    Registry(tools)


@pytest.mark.parametrize(
    "broken",
    [
        "Missing", "NoTool", "Unfinished", "Undescribed", "Nameless", "Spaced", "Harmless", "Fails", "Endless",
        "Shadow",
    ],
)  # fmt: skip
def test_a_tool_that_does_not_work_is_a_line_and_takes_nothing_along(installed: Any, broken: str) -> None:
    package = f"broken_tools_{broken.lower()}"
    installed(package, THIRD_PARTY, {"third_party": "Good", "broken": broken})
    tools, problems = discover()
    assert {tool.name for tool in tools} >= {*BUILT_IN, "third_party"}
    (problem,) = problems
    assert "broken" in problem
    assert package in problem
    assert "\n" not in problem
    own = next(tool for tool in tools if tool.name == "read_file")
    assert type(own).__module__ == "mini_agent_tools.read_file"
    assert len(Registry(tools).specs) == len(tools)
