"""The one place that knows httpx's exceptions, and says in our words what went wrong on the way to an endpoint."""

import ssl
from collections.abc import Iterator
from urllib.request import getproxies

import httpx

from mini_agent.core.errors import ConnectionFailedError, CutError, DeadlineError, ModelError, ProtocolError
from mini_agent.wire.profiles import shown

_PROXY_HINT = "A proxy is set: look at HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."


def mapped(error: Exception, url: httpx.URL, connect_s: float, *, answering: bool) -> ModelError:
    """Every exception of httpx as one of ours; the message names what happened, the host and the cause.

    answering: whether the answer had begun, so that an end is a cut.
    """
    host = url.host or str(url)
    if isinstance(error, httpx.ConnectTimeout):
        result: ModelError = DeadlineError(
            f"no connection to {host} within {connect_s:g} s", kind="connect_timeout"
        )
    elif isinstance(error, httpx.DecodingError):
        result = ProtocolError(f"{host} sent a body that can't be unpacked: {error}", retryable=True)
    elif isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        result = ConnectionFailedError(f"{shown(str(url))} can't be asked: {error}", retryable=False)
    elif isinstance(error, httpx.ProxyError):
        result = ConnectionFailedError(
            f"the proxy on the way to {host} refused: {_cause(error)}",
            hint=_PROXY_HINT,
        )
    elif isinstance(error, httpx.ConnectError) and isinstance(_deepest(error), ConnectionRefusedError):
        where = f"{host}:{url.port}" if url.port else host
        result = ConnectionFailedError(
            f"no connection to {where}: it was refused",
            hint=_PROXY_HINT if getproxies() else "Is the server running, and is this its port?",
        )
    elif isinstance(error, httpx.ConnectError):
        # A certificate that is not trusted will not be a second later.
        result = ConnectionFailedError(
            f"no connection to {host}: {_cause(error)}",
            retryable=not isinstance(_deepest(error), ssl.SSLCertVerificationError),
            hint=_PROXY_HINT if getproxies() else None,
        )
    elif isinstance(error, httpx.RemoteProtocolError) and answering:
        result = CutError(f"{host} ended its answer too early")
    else:
        result = ConnectionFailedError(f"the connection to {host} broke: {_cause(error)}")
    result.__cause__ = error
    return result


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and its causes, the first of a group's."""
    link: BaseException | None = error
    for _ in range(8):
        if link is None:
            return
        yield link
        grouped = link.exceptions if isinstance(link, BaseExceptionGroup) else ()
        link = grouped[0] if grouped else link.__cause__ or link.__context__


def _deepest(error: BaseException) -> BaseException:
    *_, last = _chain(error)
    return last


def _cause(error: BaseException) -> str:
    """The text of the deepest cause that has one; else the classes, because an error without a word is no help."""
    links = list(_chain(error))
    text = next((said for link in reversed(links) if (said := str(link).strip())), "")
    names = [type(link).__name__ for link in links]
    return f"{names[0]}: {text}" if text else " <- ".join(dict.fromkeys(names))
