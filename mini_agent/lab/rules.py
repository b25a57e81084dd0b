"""What a provider refuses of a request: the rules of each family, checked in words (product A1, D2).

They are the rules that providers enforce with a 400, some only in part; a request without a violation is taken by all of
them. Where they come from stands at each family's.
"""

from collections.abc import Iterator
from typing import Any

from mini_agent.core.profile import Api
from mini_agent.lab.chat_rules import broken_in_chat
from mini_agent.lab.messages_rules import broken_in_messages
from mini_agent.lab.responses_rules import broken_in_responses


def violations(api: Api, body: Any, *, echo_reasoning: bool = False) -> list[str]:
    """What is wrong with the body of a request, each with its place; nothing where it obeys.

    echo_reasoning: whether chat completions wants reasoning back as DeepSeek does (in its thinking mode).
    """
    if not isinstance(body, dict):
        return ["the body is no JSON object"]
    return list(dict.fromkeys(_broken(api, body, echo_reasoning)))


def _broken(api: Api, body: dict[str, Any], echo_reasoning: bool) -> Iterator[str]:
    if not (isinstance(body.get("model"), str) and body["model"].strip()):
        yield "model is missing"
    if not isinstance(body.get("stream", False), bool):
        yield "stream is no boolean"
    match api:
        case "chat":
            yield from broken_in_chat(body, echo_reasoning=echo_reasoning)
        case "messages":
            yield from broken_in_messages(body)
        case "responses":
            yield from broken_in_responses(body)
