"""The pure parts of the injector: victims, and rules that cut a pod off."""

import os
import subprocess
from pathlib import Path

import pytest

from sluice_lab.nemesis import injector, manifest
from sluice_lab.scenario.topology import StreamShard


def test_a_pick_names_a_victim_whatever_their_order() -> None:
    assert [injector.chosen(["c", "a", "b"], pick) for pick in (0, 0.34, 0.999)] == ["a", "b", "c"]
    assert injector.chosen([], 0.5) == ""


def test_neighbours_lie_side_by_side() -> None:
    shards = [StreamShard(str(n), n, n) for n in range(4)]
    assert {tuple(int(shard.id) for shard in injector.neighbours(shards, pick / 100)) for pick in range(100)} == {(0, 1), (1, 2), (2, 3)}


def test_a_zombie_reaches_kinesis_and_nothing_else() -> None:
    """The exceptions come before the rule: the first that matches decides."""
    rules = injector.only("10.0.0.7", "http://172.18.0.1:4567")
    assert [rule.rpartition(" ")[2] for rule in rules] == ["ACCEPT", "ACCEPT", "DROP", "DROP"]
    assert rules[0] == "-s 10.0.0.7 -d 172.18.0.1 -p tcp --dport 4567 -j ACCEPT"
    assert injector.no_dynamodb("10.0.0.7", "http://172.18.0.1:8000") == ["-s 10.0.0.7 -d 172.18.0.1 -p tcp --dport 8000 -j DROP"]


def test_the_manifest_brings_the_pipeline_to_driver_and_executors() -> None:
    found = manifest.consumer(manifest.Addresses("http://k:1", "http://d:2", "/sink"))["spec"]
    for role in ("driver", "executor"):
        template = found[role]["podTemplate"]["spec"]
        assert (
            {mount["name"] for mount in template["containers"][0]["volumeMounts"]}
            == {volume["name"] for volume in template["volumes"]}
            == {"sink", "app"}
        )
    assert f"def {found['pipeline']['entrypoint'].partition(':')[2]}(" in manifest.pipeline()["data"][f"{manifest.MODULE}.py"]


def test_a_lost_pod_reaches_nothing() -> None:
    """Neither way. Its node would be as silent."""
    assert injector.only("10.0.0.7") == ["-s 10.0.0.7 -j DROP", "-d 10.0.0.7 -j DROP"]


def test_a_frozen_process_is_stopped_and_continues() -> None:
    """It is found by a whole line of its environment. The shell is that of this machine."""
    line = f"SLUICE_POD_NAME=frozen-{os.getpid()}"
    key, _, name = line.partition("=")
    with subprocess.Popen(["sleep", "60"], env={key: name}) as one, subprocess.Popen(["sleep", "60"], env={key: f"{name}0"}) as other:
        try:
            for signal, status in (("STOP", os.WIFSTOPPED), ("CONT", os.WIFCONTINUED), ("KILL", os.WIFSIGNALED)):
                said = subprocess.run(["sh", "-c", injector.SIGNAL, "signal", line, signal], capture_output=True, text=True, check=True).stdout
                assert said.split() == [str(one.pid)]
                assert status(os.waitpid(one.pid, os.WUNTRACED | os.WCONTINUED)[1])
            assert other.poll() is None
        finally:
            one.returncode = -9  # it was waited for above
            other.kill()


@pytest.mark.parametrize(("written", "waits"), [("n-driver-1.n-1-exec-1.5.jsonl", False), ("n-driver-1.n-1-exec-11.5.jsonl", True)])
def test_an_executor_at_work_is_known_by_what_it_wrote(tmp_path: Path, written: str, *, waits: bool) -> None:
    """At once if it wrote within a second; what another wrote says nothing. The node's own `find` and shell, as here."""
    (tmp_path / written).touch()
    brief = injector.AT_WORK.replace("seq 40", "seq 1")
    found = subprocess.run(["sh", "-xc", brief, "at-work", str(tmp_path), "n-1-exec-1"], capture_output=True, text=True, check=True)
    assert ("sleep" in found.stderr) is waits
