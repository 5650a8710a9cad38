"""The guard that keeps the tests off the network can be relied on."""

import socket
import subprocess
import sys

import pytest

TRY = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=2)"


@pytest.mark.parametrize("address", ["192.0.2.1", "example.org", "2001:db8::1"])
def test_other_machines_are_out_of_reach(address):
    with pytest.raises(OSError, match="may not touch the network"):
        socket.create_connection((address, 80), timeout=2)


def test_child_processes_are_cut_off_too():
    done = subprocess.run([sys.executable, "-c", TRY], capture_output=True, text=True, check=False)
    assert done.returncode and "may not touch the network" in done.stderr


def test_this_machine_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
