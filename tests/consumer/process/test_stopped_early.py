"""A run that is stopped with Ctrl-C or SIGTERM while its start is still being checked."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

# A shell's job in the background ignores Ctrl-C, and so does what it starts: the tests may run in one.
HEARD = ("env", "--default-signal=INT")


@pytest.mark.parametrize(
    ("how", "names", "ends", "code", "reason"),
    [
        (signal.SIGINT, "a", [], 0, "Stopped"),
        (signal.SIGINT, "a", ["--until", "tip"], 75, "Interrupted"),
        (signal.SIGINT, "ab", [], 0, "Stopped"),
        (signal.SIGTERM, "a", [], 0, "Stopped"),
        (signal.SIGTERM, "ab", ["--until", "tip"], 75, "Interrupted"),
    ],
    ids=["a consumer", "a run with an end", "a group", "SIGTERM", "SIGTERM of a group with an end"],
)
def test_a_stop_during_the_checks_says_that_nothing_was_read(
    tmp_path: Path, how: signal.Signals, names: str, ends: list[str], code: int, reason: str
) -> None:
    """An end that looks like a failure leaves you to guess whether a lease was taken. The service that is asked does not answer."""
    (tmp_path / "orders.py").write_text("def process(batch, info): ...\n")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        here = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for name in names:
            stream = {"name": "orders", "region": "eu-west-1", "kinesisEndpoint": here, "dynamodbEndpoint": here}
            config = {"name": name, "stream": stream, "checkpoints": {"table": f"table-{name}"}, "pipeline": {"entrypoint": "orders:process"}}
            (tmp_path / f"{name}.json").write_text(json.dumps(config))
        configs = [word for name in names for word in ("--config", str(tmp_path / f"{name}.json"))]
        environment = os.environ | {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "SLUICE_TERMINATION_LOG": str(tmp_path / "log")}
        environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment.get("PYTHONPATH", "")])
        command = [*HEARD, sys.executable, "-m", "sluice_consumer", *configs, *ends, "--check-seconds", "2"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
            try:
                silent.settimeout(60)
                with silent.accept()[0]:
                    program.send_signal(how)
                    _, said = program.communicate(timeout=60)
            finally:
                program.kill()
    assert program.returncode == code, said
    assert f"{reason}: stopped before the lease was taken: nothing was read" in said
    assert "Aborted" not in said
