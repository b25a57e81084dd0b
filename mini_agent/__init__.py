"""mini-agent: a terminal coding agent, also usable as a library.

The names below are loaded when they are first used, so that importing the package costs nothing.
"""

__version__ = "0.1.0"

_HOMES = {
    "Agent": "mini_agent.agent.loop",
    "TurnSettings": "mini_agent.agent.loop",
    "Registry": "mini_agent.agent.tools",
    "Tool": "mini_agent.agent.tools",
    "ToolContext": "mini_agent.agent.tools",
    "Conversation": "mini_agent.core.history",
    "Message": "mini_agent.core.messages",
    "Request": "mini_agent.core.messages",
    "Response": "mini_agent.core.messages",
    "ToolResult": "mini_agent.core.messages",
    "ModelError": "mini_agent.core.errors",
    "ToolError": "mini_agent.core.errors",
    "Streamer": "mini_agent.models.base",
    "complete": "mini_agent.models.base",
}

__all__ = [
    "Agent",
    "Conversation",
    "Message",
    "ModelError",
    "Registry",
    "Request",
    "Response",
    "Streamer",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "TurnSettings",
    "__version__",
    "complete",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  only those who use a name pay for it

    return getattr(import_module(_HOMES[name]), name)
