"""Addresses and free ports of this machine."""

from __future__ import annotations

import socket

from sluice_lab.errors import LabError

LOOPBACK = "127.0.0.1"


def free_port(host: str, wanted: int | None = None) -> int:
    """A free port at an address: the wanted one, or any.

    Raises:
        LabError: another program listens there, or the address is not one of this machine.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, wanted or 0))
        except OSError as error:
            raise LabError(f"cannot listen on {host}:{wanted or 'any port'}: {error.strerror}") from error
        return int(probe.getsockname()[1])
