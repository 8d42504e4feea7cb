"""Kinesis and DynamoDB on loopback: moto's server, as a child process that ends with this one."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from sluice_checkpoints.errors import Refused
from sluice_consumer.process import child_process

START_SECONDS = 120.0
POLL_SECONDS = 0.1
ACCOUNT = "MOTO_ACCOUNT_ID"  # moto's variable
REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "dev", "AWS_SECRET_ACCESS_KEY": "dev", "AWS_DEFAULT_REGION": REGION}


@contextlib.contextmanager
def emulators(account: str | None = None) -> Iterator[Callable[[], str]]:
    """Starts them, and yields what waits for them and gives their address. All streams and tables are in this account, or in moto's own.

    Raises:
        Refused: moto is not installed; of what waits, it does not start.
    """
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask_cors") is None:
        raise Refused('dev: moto\'s server is not installed; install Sluice with its extras consumer and local (docs/testing.md, "Dev")')
    port = free_port()
    environment = os.environ | {child_process.PARENT: str(os.getpid())} | ({ACCOUNT: account} if account else {})
    command = [sys.executable, "-m", "sluice_consumer.dev.emulator", str(port)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as server:
        try:
            yield functools.partial(_address, server, port)
        finally:
            server.kill()


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def _address(server: subprocess.Popen[bytes], port: int) -> str:
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return f"http://127.0.0.1:{port}"
        time.sleep(POLL_SECONDS)
    raise Refused(f"dev: moto's server does not start; run it by hand to see why: {sys.executable} -m moto.server -H 127.0.0.1 -p {port}")


def main() -> None:
    """The child's program."""
    child_process.die_with_parent()
    from moto import server  # noqa: PLC0415 - of an extra

    server.main(["-H", "127.0.0.1", "-p", sys.argv[1]])


if __name__ == "__main__":
    main()
