"""The guard itself: a test that leaves the machine fails."""

import socket
import subprocess
import sys

import pytest


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("example.com", 80), ("2001:db8::1", 80)])
def test_nothing_but_loopback_can_be_reached(address):
    with pytest.raises(RuntimeError, match="only loopback"):
        socket.create_connection(address, timeout=1)


def test_processes_started_by_tests_are_held_as_well():
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "only loopback" in run.stderr


def test_loopback_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass
