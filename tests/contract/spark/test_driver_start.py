"""A driver before it may start Spark: its JVM boots, and nothing more. The real programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.exits.ending import decoded
from sluice_consumer.process import child_process
from sluice_lab.machine import processes

pytestmark = [pytest.mark.spark, pytest.mark.slow]
COMMAND = [sys.executable, "-m", "sluice_consumer.process.driver_program", "--master", "local[1]", "--config"]


def javas(group: int) -> list[int]:
    """Processes of a group that run Spark in Java; not Spark's launcher."""
    return [pid for pid in (int(folder.name) for folder in Path("/proc").glob("[0-9]*")) if _is_java(pid, group)]


def _is_java(pid: int, group: int) -> bool:
    try:
        program, *words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return os.getpgid(pid) == group and program.endswith(b"java") and b"org.apache.spark.launcher.Main" not in words
    except OSError:
        return False


def listens(pid: int) -> bool:
    sockets = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
    links = {target(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    return any(state == "0A" and f"socket:[{inode}]" in links for _, _, _, state, _, _, _, _, _, inode, *_ in sockets)


def target(link: Path) -> str:
    """What a link of another process points to; nothing if it closed the file meanwhile."""
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


def refused(path: Path, look: Callable[[child_process.DriverProcess], None]) -> None:
    with child_process.starting([*COMMAND, str(path)]) as driver:
        look(driver)
        raise Refused("a check failed")


def test_a_jvm_boots_before_spark_may_start_and_ends_with_the_driver(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """While the supervisor makes its checks. No session is in it by then: nothing is asked for, and nothing is left behind if a check fails."""
    path, booted = tmp_path / "consumer.json", list[int]()
    path.write_text(json.dumps({"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "m:f"}}))

    def look(driver: child_process.DriverProcess) -> None:
        assert processes.poll(lambda: any(map(listens, javas(driver.pid))), 120)
        booted.extend([driver.pid, *javas(driver.pid)])

    with pytest.raises(Refused, match="a check failed"):
        refused(path, look)
    group, *jvms = booted
    assert len(jvms) == 1
    assert processes.poll(lambda: javas(group) == [], 60)
    assert "starting Spark" not in capfd.readouterr().err


def test_a_driver_with_a_wrong_configuration_starts_no_jvm(tmp_path: Path) -> None:
    """The supervisor refuses it meanwhile, in words of its own; without that the driver would end by itself."""
    path = tmp_path / "consumer.json"
    path.write_text("{}")

    def look(driver: child_process.DriverProcess) -> None:
        child_process.permit(driver, {})
        assert driver.wait(60) == 1
        assert javas(driver.pid) == []

    with pytest.raises(Refused, match="a check failed"):
        refused(path, look)


def test_a_driver_whose_jvm_does_not_start_ends_once_it_may_start_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not before: what the checks find is to be said first. No job has begun, so that the lease may be released."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "nowhere"))
    path = tmp_path / "consumer.json"
    path.write_text(json.dumps({"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "m:f"}}))
    with child_process.starting([*COMMAND, str(path)]) as driver:
        child_process.permit(driver, {})
        assert decoded(driver.wait(60)) == (1, True)
        assert driver.gave_its_word()
    assert "FileNotFoundError" in capfd.readouterr().err
