"""On the import path of every process that the tests start: only loopback can be reached from there.

`conftest.py` installs the same hook in the test process itself.
"""

import ipaddress
import sys
from typing import Any


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        address = arguments[1]
    elif event == "socket.getaddrinfo":
        address = arguments
    else:
        return
    if not isinstance(address, tuple):
        return  # a Unix socket
    host = address[0]
    if isinstance(host, bytes):
        host = host.decode()
    if not host or host == "localhost" or host.endswith(".invalid"):
        return
    try:
        allowed = ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        allowed = False
    if not allowed:
        raise RuntimeError(f"a test tried to reach {host}: only loopback may be reached")


sys.addaudithook(_loopback_only)
