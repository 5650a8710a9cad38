"""No connection but to this machine, in the test process and in every Python that it starts.

``tests/conftest.py`` puts this folder on ``PYTHONPATH``, where Python looks for a module of this name at
its start; so notebook kernels and worker processes are cut off as well.
"""

import ipaddress
import socket


class NetworkBlocked(OSError):
    """A test tried to reach another machine."""


def _check(host: object) -> None:
    if not isinstance(host, str) or host in ("localhost", ""):
        return
    try:
        outside = not ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        outside = True  # a name that would have to be looked up
    if outside:
        raise NetworkBlocked(f"The tests may not touch the network, but something asked for {host!r}.")


def _guarded(original):
    def call(self, address, *rest):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _check(address[0])
        return original(self, address, *rest)

    return call


def _guarded_lookup(original):
    def lookup(host, *rest, **options):
        _check(host.decode() if isinstance(host, bytes) else host)
        return original(host, *rest, **options)

    return lookup


socket.socket.connect = _guarded(socket.socket.connect)
socket.socket.connect_ex = _guarded(socket.socket.connect_ex)
socket.getaddrinfo = _guarded_lookup(socket.getaddrinfo)
