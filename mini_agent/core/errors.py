"""What can go wrong, rich inside the process and plain outside it.

    MiniAgentError
    ├── ConfigError                 settings or command line that can't work; ends with exit code 2
    ├── ToolError                   a tool's refusal, told to the model
    └── ModelError                  a request that gave no answer
        ├── DeadlineError           connect, first event, idle, stall, total (product W9)
        ├── ConnectionFailedError   refused, reset, DNS, TLS, proxy
        ├── CutError                the stream ended before its end (W4)
        ├── ProtocolError           what came is not what the endpoint claims to speak (W3, W14)
        ├── ProviderError           the provider said no: status, code, type
        ├── EmptyAnswerError        neither text nor a call (A6)
        └── RepetitionError         the model repeats itself (R5)

A retry decision is made on these; what crosses to the screen or the journal is an `ErrorInfo` made from them (W13).
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from mini_agent.core.redact import redact

ErrorKind = Literal[
    "connect_timeout",
    "first_event_timeout",
    "idle_timeout",
    "stall_timeout",
    "total_timeout",
    "connection",
    "cut",
    "protocol",
    "provider",
    "rate_limit",
    "quota",
    "auth",
    "context_overflow",
    "too_large",
    "bad_request",
    "overloaded",
    "empty",
    "repetition",
    "config",
]

DeadlineKind = Literal[
    "connect_timeout", "first_event_timeout", "idle_timeout", "stall_timeout", "total_timeout"
]

DETAIL_LIMIT = 2000
"""Characters of a provider's answer kept in `ErrorInfo.detail`."""


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An error as a plain value: one line to read, the rest to decide and to search by.

    detail: an excerpt of what was received, or the causes, without secrets. hint: what the user can do, one line.
    retry_after_s: seconds the server asked to wait.
    """

    kind: ErrorKind
    message: str
    status: int | None = None
    code: str | None = None
    provider_type: str | None = None
    retryable: bool = False
    retry_after_s: float | None = None
    request_id: str | None = None
    attempt: int | None = None
    detail: str | None = None
    hint: str | None = None


class MiniAgentError(Exception):
    """Everything this program raises on purpose."""


class ConfigError(MiniAgentError):
    """A setting or an argument that can't work; its text is one line: what, where, what to do."""


class ToolError(MiniAgentError):
    """A refusal of a tool or of the workspace; its text goes to the model and says what to do instead."""


class ModelError(MiniAgentError):
    """A request that gave no answer.

    retryable: whether the same request may succeed a little later (R2). veto: the server's own word on that
    (`x-should-retry`), None where it said nothing. refused: what of the request the provider will not take: `images`,
    `reasoning`, or the name of a top-level field as it was sent. asked_tokens, limit_tokens: the size of the request and
    what would fit, in the provider's own count, where it named them. request_id and attempt are filled in where the
    attempt is known.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        retryable: bool,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
        provider_type: str | None = None,
        retry_after_s: float | None = None,
        veto: bool | None = None,
        body: str | None = None,
        hint: str | None = None,
        refused: str | None = None,
        asked_tokens: int | None = None,
        limit_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind: ErrorKind = kind
        self.retryable = retryable
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.code = code
        self.provider_type = provider_type
        self.retry_after_s = retry_after_s
        self.veto = veto
        self.body = body
        self.hint = hint
        self.refused = refused
        self.asked_tokens = asked_tokens
        self.limit_tokens = limit_tokens
        self.secrets: tuple[str, ...] = ()
        self.request_id: str | None = None
        self.attempt: int | None = None

    def __str__(self) -> str:
        return self.message  # a word may be added to it on its way up

    def info(self) -> ErrorInfo:
        """The plain value of this error, without secrets."""
        return ErrorInfo(
            kind=self.kind,
            message=self._told(self.message),
            status=self.status,
            code=None if self.code is None else self._told(self.code),
            provider_type=None if self.provider_type is None else self._told(self.provider_type),
            retryable=self.retryable,
            retry_after_s=self.retry_after_s,
            request_id=self.request_id,
            attempt=self.attempt,
            detail=self._detail(),
            hint=self.hint,
        )

    def _detail(self) -> str | None:
        """What was received, else the chain of causes."""
        if self.body:
            return self._told(self.body)[:DETAIL_LIMIT]
        causes: list[str] = []
        cause = self.__cause__
        while cause is not None and len(causes) < 5:
            causes.append(f"{type(cause).__name__}: {cause}".rstrip(": "))
            cause = cause.__cause__
        return self._told(" <- ".join(causes))[:DETAIL_LIMIT] or None

    def _told(self, text: str) -> str:
        return redact(text, self.secrets)


class DeadlineError(ModelError):
    """A deadline of W9 passed. The total one ends the request, the others only the attempt."""

    def __init__(self, message: str, *, kind: DeadlineKind) -> None:
        super().__init__(message, kind=kind, retryable=kind != "total_timeout")


class ConnectionFailedError(ModelError):
    """No usable connection: refused, reset, DNS, TLS, proxy."""

    def __init__(self, message: str, *, retryable: bool = True, hint: str | None = None) -> None:
        super().__init__(message, kind="connection", retryable=retryable, hint=hint)


class CutError(ModelError):
    """The stream ended with neither an end mark nor a finish reason."""

    def __init__(self, message: str, *, body: str | None = None) -> None:
        super().__init__(message, kind="cut", retryable=True, body=body)


class ProtocolError(ModelError):
    """What came is not what the endpoint claims to speak."""

    def __init__(
        self, message: str, *, retryable: bool, body: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, kind="protocol", retryable=retryable, body=body, hint=hint)


class ProviderError(ModelError):
    """The provider answered with an error, by status or inside a stream."""


class EmptyAnswerError(ModelError):
    """The answer has neither text nor a tool call."""

    def __init__(self, message: str = "the model returned an empty answer") -> None:
        super().__init__(message, kind="empty", retryable=True)


class RepetitionError(ModelError):
    """The model repeats itself without end. labels: what repeated, or a provider's own names for it."""

    def __init__(self, message: str, labels: tuple[str, ...] = ()) -> None:
        super().__init__(message, kind="repetition", retryable=False)
        self.labels = labels
