"""The model behind an HTTP endpoint: transport, framing and adapter joined into a `Streamer`."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import msgspec

from mini_agent.core.errors import ModelError
from mini_agent.core.events import (
    AttemptProgress,
    BackendToolCompleted,
    BackendToolStarted,
    ChannelToken,
    Completed,
    Notice,
    Phase,
    StreamEvent,
    StreamStarted,
    ToolCallDelta,
)
from mini_agent.core.messages import Request
from mini_agent.core.profile import Profile
from mini_agent.core.redact import redact
from mini_agent.models.base import Attempt, answered, new_attempt
from mini_agent.models.offers import offered
from mini_agent.wire.adapters import adapter
from mini_agent.wire.assembly import Origin
from mini_agent.wire.deadlines import TICK_S, Watch
from mini_agent.wire.exchange import Exchange, Headers, Sent
from mini_agent.wire.failures import failure, misdirected
from mini_agent.wire.framing import BodyDecoder, ServerSentEvent
from mini_agent.wire.profiles import endpoint
from mini_agent.wire.transport import Transport

_PROGRESS = (ChannelToken, ToolCallDelta, BackendToolStarted, BackendToolCompleted)
"""What shows that the answer goes on (W9)."""

ERROR_BODY_BYTES = 65536
"""What is read of an error's body; the rest is of no use to anyone."""

ERROR_BODY_S = 5.0
"""How long it is waited for."""


class HttpModel:
    """A `Streamer` over HTTP.

    profile: the vendor, its base URL already the one to use. api_key: "" for none. transport: is closed with the model.
    now: unix seconds.
    """

    def __init__(
        self,
        profile: Profile,
        api_key: str,
        transport: Transport,
        *,
        user_agent: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._profile = profile
        self._url = endpoint(profile)
        self._transport = transport
        self._now = now
        # Streams are asked for unpacked: what compresses a stream also holds it back.
        self._headers = {"user-agent": user_agent, "accept-encoding": "identity", **profile.headers}
        self._key = ""
        self._secrets: tuple[str, ...] = ()
        self.use_key(api_key)

    def use_key(self, api_key: str) -> bool:
        """Requests carry this key from now on; whether it is another one than before."""
        if not api_key or api_key == self._key:
            return False
        self._key = api_key
        self._secrets += (api_key,)  # an old one is still a secret
        self._headers[self._profile.key_header] = self._profile.key_prefix + api_key
        return True

    async def stream(
        self, request: Request, attempt: Attempt | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        """One attempt. Raises ModelError."""
        attempt = attempt or new_attempt()
        started_t = self._now()
        body = adapter(self._profile.api).encode(request, self._profile, attempt.without)
        run = _Run(self._profile, self._url, request, body, attempt, started_t, self._now)
        yield StreamStarted(
            t=started_t,
            request_id=attempt.request_id,
            attempt=attempt.number,
            model=request.model,
            api=self._profile.api,
        )
        accept = "text/event-stream" if request.stream else "application/json"
        try:
            async with (
                self._transport.exchange(
                    self._url, {"accept": accept, **self._headers}, body, fresh=attempt.fresh_connection
                ) as exchange,
                aclosing(run.events(exchange)) as events,
            ):
                async for event in events:
                    yield self._without_secrets(event) if isinstance(event, Notice) else event
        except ModelError as error:
            error.request_id, error.attempt = attempt.request_id, attempt.number
            error.secrets = self._secrets
            if run.asked_wait_s is not None:
                error.retry_after_s = max(error.retry_after_s or 0.0, run.asked_wait_s)
            raise

    async def models(self) -> list[str]:
        """The names of the models that the endpoint offers, in its order. Raises ModelError."""
        return await offered(self._transport, self._profile, self._headers, now=self._now())

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _without_secrets(self, notice: Notice) -> Notice:
        """A server may echo the key, also where nobody expects it."""
        raw = notice.parse_error
        return msgspec.structs.replace(
            notice,
            text=redact(notice.text, self._secrets),
            parse_error=None if raw is None else redact(raw, self._secrets),
        )


class _Run:
    """What one attempt knows while it runs. asked: the body of the request."""

    def __init__(
        self,
        profile: Profile,
        url: str,
        request: Request,
        asked: dict[str, Any],
        attempt: Attempt,
        started_t: float,
        now: Callable[[], float],
    ) -> None:
        self._started_t = started_t
        self._profile = profile
        self._url = url
        self._asked = asked
        self._attempt = attempt
        self._meter = attempt.meter
        self._now = now
        total_left = (
            None if attempt.deadline is None else attempt.deadline - asyncio.get_running_loop().time()
        )
        self._watch = Watch(profile.deadlines, stream=request.stream, total_left_s=total_left)
        self._body = BodyDecoder()
        self._decoder = adapter(profile.api).decoder(
            profile, Origin(attempt.request_id, attempt.number, started_t), asked
        )
        self._headers = Headers(0, {})
        self._numbered = 0
        self._told = 0.0
        self._said = False

    @property
    def asked_wait_s(self) -> float | None:
        """The least wait before another try that the stream itself named (`retry:`, W3)."""
        return None if self._body.retry_ms is None else self._body.retry_ms / 1000

    async def events(self, exchange: Exchange) -> AsyncGenerator[StreamEvent, None]:
        """Everything up to and including `Completed`."""
        try:
            async with aclosing(self._arrivals(exchange)) as events:
                async for event in events:
                    yield event
        finally:
            self._meter.bytes = exchange.bytes
            self._meter.read_gaps_s.extend(exchange.read_gaps_s)
            self._meter.usage = self._decoder.usage
        exchange.finish()
        yield self._completed()

    async def _arrivals(self, exchange: Exchange) -> AsyncGenerator[StreamEvent, None]:
        loop = asyncio.get_running_loop()
        while not (self._decoder.ended or self._watch.over):
            allowed = self._watch.allowance_s()
            began = loop.time()
            try:
                arrival = await exchange.next(allowed)
            except TimeoutError:
                self._watch.waited(allowed)
                if (late := self._watch.expired()) is not None:
                    raise late from None
                yield self._progress("silent", exchange.bytes)
                continue
            except ModelError:
                if self._decoder.finished:
                    return  # the answer was whole; only its usage is lost (W4)
                raise
            self._watch.waited(min(allowed, loop.time() - began))
            match arrival:
                case None:
                    break
                case Sent(connect_s):
                    self._meter.connect_s = connect_s
                    self._watch.sent()
                    yield self._progress("connected", 0)
                case Headers():
                    self._headers = arrival
                    self._meter.first_byte_s = self._now() - self._started_t
                    self._watch.byte()
                    if not 200 <= arrival.status < 300:
                        raise await self._refused(exchange)
                    yield self._progress("headers", 0)
                case bytes():
                    for event in self._decode(arrival):
                        yield event
                    if loop.time() - self._told >= TICK_S:
                        yield self._progress("streaming", exchange.bytes)
        for event in self._events(self._body.close(), at_end=True):
            yield event

    def _decode(self, data: bytes) -> Iterator[StreamEvent]:
        """The events of what one read gave. Raises ModelError where the server put an error into the stream."""
        self._watch.byte()
        return self._events(self._body.feed(data))

    def _events(self, framed: list[ServerSentEvent], *, at_end: bool = False) -> Iterator[StreamEvent]:
        now = self._now()
        for event in framed:
            self._numbered += 1
            self._meter.event_bytes.append(len(event.data))
            self._watch.event()
            for decoded in self._decoder.decode(event, self._numbered, now, at_end=at_end):
                if isinstance(decoded, _PROGRESS):
                    self._watch.progress()
                    self._said = True
                yield decoded
            if self._decoder.failure is not None:
                raise self._decoder.failure
        if self._decoder.finished:
            self._watch.finish()

    def _progress(self, phase: Phase, received: int) -> AttemptProgress:
        """Tells slow from dead; between two of them lies a tick, but for the milestones."""
        self._told = asyncio.get_running_loop().time()
        return AttemptProgress(
            t=self._now(),
            request_id=self._attempt.request_id,
            attempt=self._attempt.number,
            phase=phase,
            bytes=received,
            silent_s=self._watch.silent_s,
        )

    async def _refused(self, exchange: Exchange) -> ModelError:
        """The error of a status that is no success, from as much of its body as is worth reading."""
        body = b""
        until = asyncio.get_running_loop().time() + ERROR_BODY_S
        if self._attempt.deadline is not None:
            until = min(until, self._attempt.deadline)
        try:
            while len(body) < ERROR_BODY_BYTES:
                arrival = await exchange.next(max(0.0, until - asyncio.get_running_loop().time()))
                if arrival is None:
                    break
                body += arrival if isinstance(arrival, bytes) else b""
        except (TimeoutError, ModelError):
            pass  # the status says enough
        headers = self._headers.headers
        return failure(
            self._headers.status,
            headers,
            body,
            now=self._now(),
            key_env=self._profile.key_env,
            asked=self._asked,
        )

    def _completed(self) -> Completed:
        """The whole answer. Raises ModelError where there is none: cut, empty, or not a model's answer at all."""
        if not (self._decoder.finished or self._decoder.ended or self._said) and self._is_foreign():
            raise misdirected(
                self._body.head, url=self._url, content_type=self._headers.headers.get("content-type", "")
            )
        return Completed(
            t=self._now(),
            request_id=self._attempt.request_id,
            attempt=self._attempt.number,
            response=answered(self._decoder.close()),
        )

    def _is_foreign(self) -> bool:
        """Whether what came is a body of another kind, not the beginning of a stream."""
        return self._body.kind in ("json", "ndjson", "other")
