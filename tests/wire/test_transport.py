"""Connections: how many at once, fresh ones, proxies and certificates that can't work, errors without a text, cancels."""

import asyncio
import contextlib
import socket
import ssl
from contextlib import AsyncExitStack

import pytest

from mini_agent.core.errors import ConfigError, ModelError
from mini_agent.lab.replies import Hold, Reply
from mini_agent.lab.server import LabServer
from mini_agent.wire.exchange import Headers, Sent
from mini_agent.wire.transport import Slots, Transport

FINE = Reply(200, {}, (b"fine",), "length")
HANGS = Reply(200, {}, (b"begun", Hold()))


async def drain(exchange):
    """Everything that arrives."""
    arrivals = []
    while (arrival := await exchange.next(10)) is not None:
        arrivals.append(arrival)
    return arrivals


async def ask(transport, lab, **options):
    async with transport.exchange(f"{lab.base_url}/x", {}, {"a": 1}, **options) as exchange:
        arrivals = await drain(exchange)
        exchange.finish()
        return arrivals


async def failed(transport, url):
    with pytest.raises(ModelError) as raised:
        async with transport.exchange(url, {}, {}) as exchange:
            await drain(exchange)
    return raised.value


@pytest.fixture
async def transport():
    one = Transport(connect_s=5)
    yield one
    await one.aclose()


async def test_what_arrives_is_the_request_sent_then_the_headers_then_the_body(transport):
    async with LabServer([FINE]) as lab:
        sent, headers, body = await ask(transport, lab)
    assert isinstance(sent, Sent)
    assert isinstance(headers, Headers)
    assert (headers.status, body) == (200, b"fine")


async def test_w12_more_streams_than_slots_wait_their_turn():
    slots = Slots(asyncio.Semaphore(2), asyncio.Semaphore(16))
    transport = Transport(connect_s=5, slots=slots)
    async with LabServer(lambda request: HANGS) as lab, AsyncExitStack() as stack:
        url = f"{lab.base_url}/x"
        first = [await stack.enter_async_context(transport.exchange(url, {}, {})) for _ in range(2)]
        for exchange in first:
            assert isinstance(await exchange.next(10), Sent)
        third = await stack.enter_async_context(transport.exchange(url, {}, {}))
        with pytest.raises(TimeoutError):
            await third.next(0.05)
        assert len(lab.requests) == 2
        await first[0].__aexit__(None, None, None)
        assert isinstance(await third.next(10), Sent)
    await transport.aclose()


async def test_w12_a_cancel_in_the_queue_gives_the_turn_to_the_next():
    slots = Slots(asyncio.Semaphore(1), asyncio.Semaphore(16))
    transport = Transport(connect_s=5, slots=slots)
    async with LabServer(lambda request: FINE) as lab:
        async with transport.exchange(f"{lab.base_url}/x", {}, {}) as holder:
            await holder.next(10)
            waiting = asyncio.create_task(ask(transport, lab))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert (await ask(transport, lab))[-1] == b"fine"
    await transport.aclose()


async def test_two_clients_share_the_slots_of_the_process():
    process = asyncio.Semaphore(1)
    one, other = (Transport(connect_s=5, slots=Slots(process=process)) for _ in range(2))
    async with LabServer(lambda request: HANGS) as lab, one.exchange(f"{lab.base_url}/x", {}, {}) as holder:
        await holder.next(10)
        async with other.exchange(f"{lab.base_url}/x", {}, {}) as waiting:
            with pytest.raises(TimeoutError):
                await waiting.next(0.05)
    await one.aclose()
    await other.aclose()


async def test_r6_a_fresh_connection_is_outside_the_pool(transport):
    async with LabServer(lambda request: FINE) as lab:
        for fresh in (False, False, True, False):
            assert (await ask(transport, lab, fresh=fresh))[-1] == b"fine"
        connections = [request.connection for request in lab.requests]
    assert connections[0] == connections[1] == connections[3]
    assert connections[2] != connections[0]


async def test_d16_five_hundred_cancels_leave_the_pool_healthy(transport):
    async with LabServer(lambda request: HANGS) as lab:
        for number in range(500):
            async with transport.exchange(f"{lab.base_url}/x", {}, {}) as exchange:
                for _ in range(number % 4):
                    await exchange.next(10)
        lab._script = lambda request: FINE
        assert (await ask(transport, lab))[-1] == b"fine"
        await lab.until(lambda server: len(server.disconnects) + 1 >= len(server.requests))
    assert transport._closing == set()


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("HTTPS_PROXY", "ftp://127.0.0.1:1", "ftp"),
        ("ALL_PROXY", "socks5://127.0.0.1:1", "SOCKS"),
        ("HTTP_PROXY", "http://[::1", "proxy settings"),
    ],
)
def test_proxy_settings_that_cant_work_are_said(monkeypatch, variable, value, said):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as raised:
        Transport(connect_s=5)
    assert said in str(raised.value)
    assert "HTTPS_PROXY" in str(raised.value)


def test_t7_the_password_of_a_proxy_is_not_told(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "ftp://user:hunter2@127.0.0.1:1")
    with pytest.raises(ConfigError) as raised:
        Transport(connect_s=5)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "value", ["", ",", "*", "127.0.0.1", " 127.0.0.1 , x", ".local,127.0.0.1:80", "fe80::/10", "[::1]"]
)
async def test_an_odd_no_proxy_is_either_obeyed_or_said(monkeypatch, value):
    monkeypatch.setenv("NO_PROXY", value)
    transport = None
    with contextlib.suppress(ConfigError):
        transport = Transport(connect_s=5)
    if transport is None:
        with pytest.raises(ConfigError, match="NO_PROXY"):
            Transport(connect_s=5)
        return
    async with LabServer([FINE]) as lab:
        assert (await ask(transport, lab))[-1] == b"fine"
    await transport.aclose()


async def test_a_proxy_that_is_not_there_is_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("NO_PROXY", "elsewhere")
    transport = Transport(connect_s=5)
    error = await failed(transport, "http://host.invalid/x")
    assert (error.kind, error.retryable) == ("connection", True)
    assert "HTTP_PROXY" in error.hint
    await transport.aclose()


async def test_a_proxy_is_used_and_its_tunnel_is_not_taken_for_the_request(monkeypatch):
    """The lab answers the CONNECT with an error; nothing was sent to the endpoint itself."""
    async with LabServer([Reply(407, {}, (b"who are you",), "length")]) as lab:
        monkeypatch.setenv("HTTPS_PROXY", lab.base_url.removesuffix("/v1"))
        transport = Transport(connect_s=5)
        async with transport.exchange("https://host.invalid/x", {}, {}) as exchange:
            with pytest.raises(ModelError) as raised:
                assert not isinstance(await exchange.next(10), Sent)
        assert "proxy" in raised.value.message
        await transport.aclose()


async def test_a_file_of_certificates_that_cant_be_used_is_said(tmp_path, monkeypatch):
    broken = tmp_path / "ca.pem"
    broken.write_text("no certificate")
    for path in (broken, tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match="certificates"):
            Transport(connect_s=5, ca_file=str(path))


class SilentError(OSError):
    def __str__(self):
        return ""


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset"),
        (ssl.SSLError(1, "wrong version number"), "wrong version number"),
        (OSError(), "OSError"),
        (SilentError(), "SilentError"),
    ],
    ids=["dns", "reset", "tls", "mute-oserror", "mute-subclass"],
)
async def test_an_error_without_a_word_names_class_host_and_cause(transport, monkeypatch, raised, said):
    async def refuse(*args, **kwargs):
        raise raised

    monkeypatch.setattr("anyio.connect_tcp", refuse)
    error = await failed(transport, "http://some.host.invalid:1/x")
    assert "some.host.invalid" in error.message
    assert said in error.message


async def test_tls_towards_a_server_that_speaks_none_is_a_connection_error():
    transport = Transport(connect_s=0.2)
    async with LabServer(lambda request: FINE) as lab:
        error = await failed(transport, lab.base_url.replace("http://", "https://"))
    assert error.kind in ("connection", "connect_timeout")
    assert "127.0.0.1" in error.message
    await transport.aclose()


async def test_a_certificate_that_is_not_trusted_is_not_tried_again(transport, monkeypatch):
    async def refuse(*args, **kwargs):
        raise ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed")

    monkeypatch.setattr("anyio.connect_tcp", refuse)
    assert not (await failed(transport, "https://host.invalid/x")).retryable


async def test_w9_connecting_has_its_own_deadline(monkeypatch):
    async def never(*args, **kwargs):
        await asyncio.Event().wait()

    monkeypatch.setattr("anyio.connect_tcp", never)
    transport = Transport(connect_s=0.05)
    error = await failed(transport, "http://host.invalid/x")
    assert (error.kind, error.retryable) == ("connect_timeout", True)
    await transport.aclose()
