"""The shipped vendors, addresses, a user's own tables, and the fields that say where a stream ends."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mini_agent.core.errors import ConfigError, CutError, ProtocolError
from mini_agent.core.messages import Message, Request, Response, Text, ToolCall, ToolResult, Usage
from mini_agent.core.profile import APIS, Api, Effort, Profile
from mini_agent.lab.rules import violations
from mini_agent.settings import Settings, load
from mini_agent.wire.adapters import adapter
from mini_agent.wire.assembly import Origin
from mini_agent.wire.chat_completions import ChatDecoder
from mini_agent.wire.framing import BodyDecoder
from mini_agent.wire.profiles import at, endpoint, owner, profile, shipped, speaking
from mini_agent.wire.shaping import call_id, reference, shaped

SHIPPED = shipped()
LOCAL = ("ollama", "llama.cpp", "vllm", "lm-studio")
VENDORS = tuple(one for one in SHIPPED.values() if one.name != "generic")


def named(one: Profile) -> str:
    return one.name


def test_the_vendors_of_w8_are_there_deepseek_first() -> None:
    assert [*SHIPPED] == [
        "deepseek",
        "openai",
        "anthropic",
        "xai",
        "openrouter",
        "moonshot",
        "qwen",
        "zhipu",
        "mistral",
        "gemini",
        "groq",
        *LOCAL,
        "generic",
    ]


def test_a_host_belongs_to_one_vendor() -> None:
    hosts = [host for one in SHIPPED.values() for host in one.hosts]
    assert len(set(hosts)) == len(hosts)
    assert all(host == host.lower() and "/" not in host for host in hosts)


@pytest.mark.parametrize("vendor", VENDORS, ids=named)
def test_a_vendor_is_whole(vendor: Profile) -> None:
    assert vendor.title
    assert owner(vendor.base_url, SHIPPED) is vendor
    assert not vendor.models or vendor.model in vendor.models
    if vendor.name in LOCAL:
        assert not vendor.key_env
        assert all(host.rsplit(":", 1)[1].isdigit() for host in vendor.hosts)
        assert vendor.deadlines.first_event_s > Profile().deadlines.first_event_s
    else:
        assert vendor.model
        assert vendor.key_env
        assert vendor.base_url.startswith("https://")


@pytest.mark.parametrize("vendor", VENDORS, ids=named)
@pytest.mark.parametrize("api", APIS)
def test_every_family_of_a_vendor_has_its_endpoint_on_a_host_of_its_own(vendor: Profile, api: Api) -> None:
    if api != vendor.api and api not in vendor.families:
        with pytest.raises(ConfigError, match=f"{vendor.name} is not known to speak {api}"):
            speaking(vendor, api)
        return
    spoken = speaking(vendor, api)
    assert spoken.api == api
    assert owner(spoken.base_url, SHIPPED) is vendor
    ending = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}[api]
    assert endpoint(spoken).endswith(ending)
    if api == "messages":
        assert spoken.headers["anthropic-version"]
        assert spoken.default_max_tokens


@pytest.mark.parametrize(
    ("api", "url"),
    [
        ("chat", "https://api.deepseek.com/chat/completions"),
        ("responses", "https://api.deepseek.com/responses"),
        ("messages", "https://api.deepseek.com/anthropic/v1/messages"),
    ],
)
def test_deepseek_speaks_all_three(api: Api, url: str) -> None:
    assert endpoint(speaking(SHIPPED["deepseek"], api)) == url


def test_what_a_family_does_not_name_is_the_vendors_own() -> None:
    chat, messages = SHIPPED["deepseek"], speaking(SHIPPED["deepseek"], "messages")
    assert (messages.model, messages.key_env, messages.models) == (chat.model, chat.key_env, chat.models)
    assert messages.effort["off"] == {"thinking": {"type": "disabled"}}
    assert "reasoning_effort" not in messages.effort["high"]
    assert speaking(SHIPPED["anthropic"], "chat").key_header == "authorization"


def test_deepseeks_price_has_a_currency_and_hours() -> None:
    price = SHIPPED["deepseek"].facts("deepseek-flash").price
    assert price is not None
    assert price.peak is not None
    assert (price.currency, price.input, price.cached, price.output) == ("CNY", 1, 0.02, 4)
    assert (price.peak.factor, price.peak.hours, price.peak.utc_offset_h) == (2, ((9, 12), (14, 18)), 8)
    assert SHIPPED["deepseek"].facts("unheard-of").price is None


@pytest.mark.parametrize(
    ("base_url", "vendor"),
    [
        ("http://localhost:11434/v1", "ollama"),
        ("http://127.0.0.1:11434", "ollama"),
        ("http://[::1]:11434/v1", "ollama"),
        ("http://LOCALHOST:8080", "llama.cpp"),
        ("http://localhost:8000/v1/", "vllm"),
        ("http://localhost:1234/v1", "lm-studio"),
        ("http://localhost", None),
        ("http://localhost:9999/v1", None),
        ("http://elsewhere.example:11434/v1", None),
        ("https://api.deepseek.com:443/v1", "deepseek"),
        ("https://api.deepseek.com.example/v1", None),
        ("https://open.bigmodel.cn/api/paas/v4", "zhipu"),
    ],
)
def test_an_address_belongs_to_the_vendor_of_its_host_or_port(base_url: str, vendor: str | None) -> None:
    found = owner(base_url, SHIPPED)
    assert (found and found.name) == vendor


@pytest.mark.parametrize(
    ("vendor", "api", "base_url", "url"),
    [
        ("mistral", "chat", "https://api.mistral.ai", "https://api.mistral.ai/v1/chat/completions"),
        ("openrouter", "chat", "https://openrouter.ai/api/", "https://openrouter.ai/api/v1/chat/completions"),
        (
            "zhipu",
            "chat",
            "https://open.bigmodel.cn",
            "https://open.bigmodel.cn/api/paas/v4/chat/completions",
        ),
        (
            "deepseek",
            "messages",
            "https://api.deepseek.com/anthropic",
            "https://api.deepseek.com/anthropic/v1/messages",
        ),
        ("ollama", "chat", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/chat/completions"),
        ("openai", "chat", "https://gate.example/x", "https://gate.example/x/chat/completions"),
        ("openai", "responses", "https://api.openai.com/v1/responses", "https://api.openai.com/v1/responses"),
    ],
)
def test_an_address_that_ends_early_is_completed_where_the_host_is_known(
    vendor: str, api: Api, base_url: str, url: str
) -> None:
    named_so = msgspec.structs.replace(SHIPPED[vendor], api=api)
    moved = at(named_so, base_url)
    assert endpoint(moved) == url
    assert moved.effort == speaking(SHIPPED[vendor], api).effort


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def settled(home: Path, config: str, flags: dict[str, Any] | None = None, **env: str) -> Settings:
    (home / "config.toml").write_text(config, encoding="utf-8")
    return load(home.parent, flags or {}, {"MINI_AGENT_HOME": str(home), **env})


def test_a_users_own_vendor_is_a_table(home: Path) -> None:
    config = """
[profiles.house]
base_url = "https://llm.house.example/v1"
key_env = ["HOUSE_API_KEY"]
model = "house-1"
headers = { x-team = "blue" }
extra_body = { top_k = 1 }
end_marks = ["<end>"]
models.house-1 = { window = 32_000, price = { input = 1, output = 2, currency = "EUR" } }
families.messages = { base_url = "https://llm.house.example/claude/v1", key_header = "x-api-key", key_prefix = "" }
"""
    chosen = settled(home, config, HOUSE_API_KEY="k-house")
    assert (chosen.profile.name, chosen.model, chosen.api_key) == ("house", "house-1", "k-house")
    assert chosen.profile.facts("house-1").window == 32_000
    spoken = settled(home, config, {"profile": "house", "api": "messages"}).profile
    assert endpoint(spoken) == "https://llm.house.example/claude/v1/messages"
    assert (spoken.key_header, spoken.headers) == ("x-api-key", {"x-team": "blue"})


def test_a_table_changes_a_shipped_vendor_and_keeps_the_rest(home: Path) -> None:
    config = """
[profiles.deepseek]
model = "deepseek-v4-pro"
deadlines.idle_s = 30
models.deepseek-v4-pro.window = 500_000
extra_body = { user = "me" }
[profiles.deepseek.families.messages]
default_max_tokens = 100
"""
    changed = settled(home, config, DEEPSEEK_API_KEY="k").profile
    before = SHIPPED["deepseek"]
    assert (changed.model, changed.hosts, changed.key_env) == (
        "deepseek-v4-pro",
        before.hosts,
        before.key_env,
    )
    assert changed.deadlines == msgspec.structs.replace(before.deadlines, idle_s=30)
    assert changed.facts("deepseek-v4-pro") == msgspec.structs.replace(
        before.facts("deepseek-v4-pro"), window=500_000
    )
    assert changed.facts("deepseek-flash") == before.facts("deepseek-flash")
    messages = speaking(changed, "messages")
    assert messages.default_max_tokens == 100
    assert endpoint(messages) == endpoint(speaking(before, "messages"))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            '[profiles.a]\nbase_ulr = "x"\n',
            "line 2: [profiles.a]: Object contains unknown field `base_ulr`; did you mean base_url?",
        ),
        ("\n[profiles.a]\nhosts = 3\n", "line 2: [profiles.a]: Expected `array`, got `int` - at `$.hosts`"),
        ('[profiles.a]\napi = "grpc"\n', "[profiles.a]: Invalid enum value 'grpc' - at `$.api`"),
        ("[profiles.a]\ndeadlines.idle_s = -1\n", "at `$.deadlines.idle_s`"),
        ("[profiles.a]\neffort.extreme = {}\n", "[profiles.a]: Invalid enum value 'extreme'"),
        (
            "[profiles.a]\nfamilies.messages.hedaers = {}\n",
            "families.messages: Object contains unknown field `hedaers`",
        ),
        ("[profiles.deepseek]\ncall_id_chars = 2\n", "[profiles.deepseek]: Expected `int` >= 8"),
        ("[profiles]\na = 3\n", "[profiles.a]: "),
    ],
)
def test_a_table_that_cant_be_is_one_line_that_names_file_and_place(
    home: Path, table: str, said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        settled(home, table)
    assert said in str(raised.value)
    assert str(home / "config.toml") in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_local_server_gets_no_key_but_the_one_for_any_endpoint(home: Path) -> None:
    keys = {"DEEPSEEK_API_KEY": "k-deep", "OPENAI_API_KEY": "k-open", "OLLAMA_API_KEY": "k-cloud"}
    flags = {"base_url": "http://localhost:11434/v1", "model": "m"}
    assert settled(home, "", flags, **keys).profile.name == "ollama"
    assert settled(home, "", flags, **keys).api_key == ""
    assert settled(home, "", {"profile": "ollama", "model": "m"}, **keys).api_key == ""
    assert settled(home, "", flags, **keys, MINI_AGENT_API_KEY="k-own").api_key == "k-own"


def test_the_first_key_in_the_order_of_the_file_chooses(home: Path) -> None:
    assert settled(home, "", ANTHROPIC_API_KEY="a", OPENAI_API_KEY="b").profile.name == "openai"
    assert settled(home, "", GROQ_API_KEY="a", DEEPSEEK_API_KEY="b").profile.name == "deepseek"
    assert settled(home, "", KIMI_API_KEY="a").profile.name == "moonshot"


def test_effort_then_extra_body_then_names_then_what_is_refused() -> None:
    vendor = Profile(
        effort={"default": {"show": True}, "low": {"thinking": {"type": "on", "budget": 1}}},
        extra_body={"thinking": {"budget": 2}},
        rename={"max_tokens": "cap"},
        refuses=("stream_options",),
    )
    body = {"max_tokens": 1, "stream_options": {}}
    low = shaped(body, Request((), effort="low"), vendor, frozenset())
    assert low == {"cap": 1, "thinking": {"type": "on", "budget": 2}}
    assert shaped(body, Request(()), vendor, frozenset({"cap", "thinking"})) == {"show": True}
    assert vendor.extra_body == {"thinking": {"budget": 2}}


def test_call_ids_fit_and_agree() -> None:
    nine = Profile(call_id_chars=9)
    assert call_id("D681PevKs", nine) == "D681PevKs"
    made = {
        given: call_id(given, nine) for given in ("", "call_1", "call_2", "D681PevK-", "é12345678", "a" * 99)
    }
    assert len(set(made.values())) == len(made)
    assert all(len(made_id) == 9 and made_id.isalnum() and made_id.isascii() for made_id in made.values())
    assert call_id("call_1", nine) == made["call_1"]
    assert call_id("call_1", Profile()) == "call_1"


def answered(body: bytes, **fields: Any) -> Response:
    """The answer of a body under a profile with these fields, the same joined and byte by byte."""
    answers: list[Response] = []
    for chunks in ([body], [body[place : place + 1] for place in range(len(body))]):
        framing, decoder = BodyDecoder(), ChatDecoder(Profile(**fields), Origin("r", 1, 0.0))
        for chunk in chunks:
            for event in framing.feed(chunk):
                decoder.decode(event, 1, 0.0)
                if decoder.failure is not None:
                    raise decoder.failure
        for event in framing.close():
            decoder.decode(event, 1, 0.0, at_end=True)
        answers.append(decoder.close())
    assert answers[0] == answers[1]
    return answers[0]


HI = b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
LATE = b'data: {"choices":[{"delta":{"content":" late"}}]}\n\n'


@pytest.mark.parametrize(
    ("end", "fields"),
    [
        (b"data: <EOS>\n\n", {"end_marks": ("<eos>",)}),
        (b"data:\n\n", {"end_marks": ("[DONE]", "")}),
        (b"data: \n\n", {"end_marks": ("",)}),
        (b"event: done\ndata: {}\n\n", {"end_events": ("done",)}),
        (b"event: done\ndata:\n\n", {"end_events": ("done",)}),
        (b"event: done\ndata: bye {\n\n", {"end_events": ("close", "done")}),
        (b'event: done\ndata: {"choices":[]}\n\n', {"end_events": ("done",)}),
        (b'data: {"done":true}\n\n', {"end_when": {"done": True}}),
        (b'data: {"state":{"now":"over"}}\n\n', {"end_when": {"done": True, "state.now": "over"}}),
        (b'data: {"choices":[{"last":1}]}\n\n', {"end_when": {"choices.0.last": 1}}),
    ],
)
def test_a_stream_ends_where_the_profile_says(end: bytes, fields: dict[str, Any]) -> None:
    assert answered(HI + end + LATE, **fields).text == "hi"
    with pytest.raises((CutError, ProtocolError)):
        answered(HI + end)


def test_an_end_may_bring_the_last_piece() -> None:
    last = b'event: done\ndata: {"done":true,"choices":[{"delta":{"content":" you"}}],"usage":{"prompt_tokens":3}}\n\n'
    for fields in ({"end_events": ("done",)}, {"end_when": {"done": True}}):
        response = answered(HI + last + LATE, **fields)
        assert (response.text, response.usage) == ("hi you", Usage(input_tokens=3))


@pytest.mark.parametrize("end", [b"event: other\ndata: {}\n\n", b'data: {"done":false}\n\n', b"data: {}\n\n"])
def test_what_is_no_end_ends_nothing(end: bytes) -> None:
    fields = {"end_events": ("done",), "end_when": {"done": True, "a.0.b": 1}}
    assert answered(HI + end + LATE + b"data: [DONE]\n\n", **fields).text == "hi late"


@pytest.mark.parametrize(
    ("chunk", "read"),
    [
        (b'{"choices":[],"usage":{"prompt_tokens":1}}', 1),
        (b'{"choices":[],"x":{"usage":{"prompt_tokens":2}}}', 2),
        (b'{"choices":[{"index":0,"usage":{"prompt_tokens":3}}]}', 3),
        (b'{"choices":[],"usage":{"prompt_tokens":1},"x":{"usage":{"prompt_tokens":2}}}', 1),
        (b'{"choices":[],"x":{"usage":null},"usage":null}', None),
        (b'{"choices":[],"x":[{"usage":{"prompt_tokens":2}}]}', None),
    ],
)
def test_usage_is_found_where_the_profile_says(chunk: bytes, read: int | None) -> None:
    body = HI + b"data: " + chunk + b"\n\ndata: [DONE]\n\n"
    assert answered(body, usage_paths=("usage", "x.usage", "choices.0.usage")).usage.input_tokens == read


def test_reasoning_apart_from_the_output_is_added_only_where_the_total_says_so() -> None:
    counts = (b'"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":7},"prompt_tokens":10',)
    for total, output in ((22, 12), (15, 5), (99, 5)):
        chunk = b'data: {"choices":[],"usage":{%b,"total_tokens":%d}}\n\n' % (*counts, total)
        assert answered(HI + chunk + b"data: [DONE]\n\n").usage.output_tokens == output


def test_a_wrong_family_is_found_when_the_table_is_read() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"families\.chat: "):
        profile("x", {"api": "messages", "families": {"chat": {"hosts": 1}}})


def _conversation() -> tuple[Message, ...]:
    call = ToolCall("call_1", "read_file", {"path": "a"})
    return (
        Message("user", (Text("hi"),)),
        Message("assistant", (Text("look"), call)),
        Message("tool", (ToolResult("alpha", call_id="call_1"),)),
        Message("assistant", (Text("it says alpha"),)),
        Message("user", (Text("thanks"),)),
    )


@pytest.mark.parametrize("effort", [None, "off", "low", "medium", "high"])
@pytest.mark.parametrize("name", list(SHIPPED))
def test_every_vendors_requests_obey_the_rules_of_each_family_it_speaks(
    name: str, effort: Effort | None
) -> None:
    """Thinking is left out of the history: what vendors want back of it is tested with their streams."""
    known = SHIPPED[name]
    for api in (known.api, *known.families):
        body = adapter(api).encode(
            Request(_conversation(), system="s", model="m", effort=effort), speaking(known, api), frozenset()
        )
        found = [one for one in violations(api, body) if "signature" not in one and "thinking" not in one]
        assert found == []


@pytest.mark.parametrize(
    ("effort", "thinking", "level"),
    [
        (None, None, None),
        ("off", "disabled", None),
        ("low", "enabled", "low"),
        ("medium", "enabled", "high"),
        ("high", "enabled", "high"),
    ],
)
def test_e16_deepseek_has_a_switch_of_its_own_for_thinking(
    effort: Effort | None, thinking: str | None, level: str | None
) -> None:
    """`reasoning_effort: none` and the like do not switch it off; on by default, it is left alone unless asked for."""
    request = Request((Message("user", (Text("hi"),)),), effort=effort)
    body = adapter("chat").encode(request, SHIPPED["deepseek"], frozenset())
    assert body.get("thinking") == (thinking and {"type": thinking})
    assert body.get("reasoning_effort") == level
    assert body["model"] == "deepseek-flash"
    assert not {"temperature", "top_p", "reasoning", "enable_thinking"} & set(body)


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.deepseek.com", "https://api.deepseek.com/chat/completions"),
        ("https://api.deepseek.com/", "https://api.deepseek.com/chat/completions"),
        ("https://api.deepseek.com/v1", "https://api.deepseek.com/v1/chat/completions"),
    ],
)
def test_e16_deepseeks_address_needs_no_version(base_url: str, url: str) -> None:
    vendor = owner(base_url, SHIPPED)
    assert vendor is SHIPPED["deepseek"]
    assert endpoint(at(vendor, base_url)) == url


@pytest.mark.parametrize("api", APIS)
def test_d20_what_was_refused_is_left_out_in_every_family(api: Api) -> None:
    request = Request((Message("user", (Text("hi"),)),), model="m", max_tokens=5, effort="low")
    for vendor in SHIPPED.values():
        if api != vendor.api and api not in vendor.families:
            continue
        spoken = speaking(vendor, api)
        whole = adapter(api).encode(request, spoken, frozenset())
        for name in whole.keys() - {"model", "messages", "input"}:
            for refused in (name, f"/{name}"):
                left = adapter(api).encode(
                    request, spoken, frozenset({reference(name), refused} - {"reasoning"})
                )
                # This family can't do without a cap on the answer: of that, only ours is left.
                needed = {"max_tokens"} if api == "messages" else set()
                assert left.keys() == whole.keys() - ({name} - needed)
                assert name not in needed or left[name] > 5
        for ours, theirs in spoken.rename.items():
            if theirs in whole:
                assert theirs not in adapter(api).encode(request, spoken, frozenset({ours}))
