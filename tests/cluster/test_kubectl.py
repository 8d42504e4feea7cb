"""`kubectl sluice` as a person runs it: the installed program as kubectl's plugin, before a real API server. All claims share one consumer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_bench import Bench
from operating import helm
from rules_world import MODULE, Subject, World, table, world

from sluice_lab.machine import tools
from sluice_lab.scenario import environment, kcl_table
from sluice_lab.scenario.installing import NAMESPACE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME, SOURCE = "seen", "seen-kcl"
POISON, SOME = 5, 16  # a number inside of an aggregate; Kinesis records on both shards
PORT, LETTERS = 9404, "/letters"
SECRET = "correct-horse-battery"  # in the pod's environment, under a name that says so
SECONDS = 60


@dataclass(frozen=True)
class Plugin:
    bench: Bench
    folder: Path

    def command(self, *arguments: str) -> tuple[list[str], dict[str, Any]]:
        cluster = self.bench.cluster
        kubectl = tools.kubectl(cluster.work, cluster.node)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, **environment.CREDENTIALS, "PATH": path, "KUBECONFIG": str(cluster.kubeconfig)}
        return [kubectl, "sluice", *arguments, f"--namespace={NAMESPACE}"], {"env": env, "cwd": self.folder, "text": True}

    def run(self, *arguments: str, code: int = 0) -> str:
        """What it says on stdout, or on stderr if it is to fail; all of it is in the test's output for people (-rP)."""
        command, how = self.command(*arguments)
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS * 5, check=False, **how)
        print(f"$ kubectl sluice {' '.join(arguments)}  -> {done.returncode}\n{done.stdout}{done.stderr}")  # noqa: T201 - a person looks at it
        assert done.returncode == code, done.stderr
        return str(done.stderr if code else done.stdout)

    def document(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def stream(bench: Bench) -> Iterator[World]:
    helm(bench, driverMetrics={"port": PORT})
    with world(bench, "plugin", shards=2) as found:
        yield found
    helm(bench)


@pytest.fixture(scope="module")
def seen(stream: World) -> Subject:
    """A consumer in one pod that has left one record out. Its letters are on the node, so that the next pods see them."""
    on_error = {"attempts": 2, "deadLetter": {"path": f"file://{LETTERS}/sluice-{stream.stream.name}-{os.getpid()}"}}
    manifest = stream.manifest(NAME, onError=on_error)
    manifest["spec"] |= {"executor": {"inDriver": True}, "pipeline": {"entrypoint": f"{MODULE}:refuse", "args": stream.args(poison=POISON)}}
    template = manifest["spec"]["driver"]["podTemplate"]["spec"]
    template["volumes"] = [*template["volumes"], {"name": "letters", "hostPath": {"path": "/tmp", "type": "Directory"}}]  # noqa: S108 - a node's
    (container,) = template["containers"]
    container["volumeMounts"] = [*container["volumeMounts"], {"name": "letters", "mountPath": LETTERS}]
    container["env"] = [*container["env"], {"name": "SINK_PASSWORD", "value": SECRET}]
    manifest["spec"]["driver"]["resources"] = {"requests": {"cpu": "50m", "memory": "512Mi"}}
    stream.bench.apply(manifest)
    found = stream.subject(NAME)
    stream.bench.until("Ready", lambda: found.settled(1))
    stream.put(SOME)
    stream.until("a record left out", lambda: found.condition("PoisonExcluded"))
    stream.bench.until("every other record", lambda: stream.missing(NAME) == [POISON])
    return found


@pytest.fixture
def plugin(bench: Bench, seen: Subject, tmp_path: Path) -> Plugin:
    assert seen.ready()
    return Plugin(bench, tmp_path)


def test_status_is_a_line_a_consumer(plugin: Plugin) -> None:
    said = plugin.run("status")
    assert said.startswith("1 consumer · 1 ready")
    head, row = said.splitlines()[2:4]
    assert head.split() == ["NAME", "PHASE", "READY", "LAG", "REC/S", "EXECUTORS", "SHARDS", "WHY"]
    assert (row.split()[0], row.split()[2]) == (NAME, "True")
    (one,) = plugin.document("status")
    assert (one["name"], one["ready"], one["figures"]["deadLetters"]) == (NAME, "True", 1)


def test_status_of_one_names_pods_conditions_and_events(plugin: Plugin) -> None:
    said = plugin.run("status", NAME)
    for words in (f"{NAME}-driver-1", "2 open, 0 ended, 2 held", "1 record left out", "PoisonExcluded", "Last events"):
        assert words in said


def test_shards_have_lag_from_the_driver_and_positions_from_the_table(plugin: Plugin) -> None:
    found = plugin.document("shards", NAME, "--table", f"--dynamodb-endpoint={plugin.bench.aws.dynamodb_endpoint}")
    assert found["notes"] == []
    assert [one["lagMillis"] for one in found["shards"]] == [0, 0]
    assert all(one["position"] for one in found["shards"])
    assert {one["holder"].partition("/")[0] for one in found["shards"]} == {f"{NAME}-driver-1"}
    assert f"{NAME}-driver-1" in plugin.run("shards", NAME)
    assert plugin.run("lag").splitlines()[1].split()[:2] == [NAME, "0s"]


def test_events_say_what_happened(plugin: Plugin) -> None:
    reasons = [one["reason"] for one in plugin.document("events", NAME)]
    assert reasons.index("DriverStarting") < reasons.index("PoisonExcluded")
    assert "PoisonExcluded" in plugin.run("events", NAME)


def test_logs_follow(plugin: Plugin, stream: World) -> None:
    assert "batch " in plugin.run("logs", NAME, "--tail=50")
    command, how = plugin.command("logs", NAME, "-f", "--tail=1")
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, **how) as process:
        reader = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")))  # type: ignore[union-attr]  # is a pipe
        reader.start()
        plugin.bench.until("the last line", lambda: lines, SECONDS)
        stream.put(SOME)
        plugin.bench.until("a line of the next batch", lambda: len(lines) > 1, SECONDS)
        process.terminate()
        reader.join(SECONDS)
    assert not reader.is_alive()


def test_a_report_has_everything_but_secrets(plugin: Plugin) -> None:
    plugin.run("report", NAME, "--file=seen.tar.gz")
    with tarfile.open(plugin.folder / "seen.tar.gz") as tar:
        files = {Path(entry.name).name: tar.extractfile(entry).read().decode() for entry in tar}  # type: ignore[union-attr]  # only files are in it
    assert set(files) == {"consumer.json", "pods.json", "events.json", "jobs.json", "status.txt", "report.txt"}
    assert [name for name, text in files.items() if SECRET in text] == []
    assert "SINK_PASSWORD" in files["pods.json"]
    assert "missing" not in files["report.txt"]


def test_a_plan_of_a_manifest_writes_nothing(plugin: Plugin, stream: World) -> None:
    dynamodb = stream.bench.aws.dynamodb
    kcl_table.write(dynamodb, SOURCE, kcl_table.dump()["description"], stream.leases())
    manifest = stream.manifest("planned", migrateFrom={"table": SOURCE, "format": "KCL", "quietSeconds": 1})
    manifest["metadata"]["namespace"] = NAMESPACE
    (plugin.folder / "planned.yaml").write_text(yaml.safe_dump(manifest))
    command, how = plugin.command("migrate", "--plan=planned.yaml")
    done = subprocess.run(command[:-1], capture_output=True, timeout=SECONDS * 5, check=False, **how)  # it has no --namespace: the manifest says it
    print(done.stdout, done.stderr)  # noqa: T201 - a person looks at it
    assert done.returncode == 0
    assert all(name in done.stdout for name in stream.stream.shards())
    assert table("planned") not in dynamodb.list_tables()["TableNames"]


def test_while_it_is_paused_nothing_happens_until_resume(plugin: Plugin, seen: Subject) -> None:
    assert "is paused" in plugin.run("pause", NAME)
    plugin.bench.until("paused", lambda: "resume" in plugin.run("status", NAME))
    seen.patch(pipeline={"args": {"poison": None}})
    assert seen.attempts() == 1
    assert "continues" in plugin.run("resume", NAME)
    plugin.bench.until("the next driver is Ready", lambda: seen.attempts() == 2 and seen.settled(1))


def test_restart_starts_the_next_driver(plugin: Plugin, seen: Subject) -> None:
    before = seen.attempts()
    assert plugin.run("restart", NAME).startswith(f"{NAME} restarts: ")
    plugin.bench.until("the next driver is Ready", lambda: seen.attempts() == before + 1 and seen.settled(1))


def test_a_redrive_runs_where_the_drivers_rights_are(plugin: Plugin, seen: Subject, stream: World) -> None:
    assert seen.attempts() > 1
    refused = plugin.run("dead-letters", "list", NAME, code=65)
    assert f"next: kubectl exec -n {NAMESPACE} {NAME}-driver-" in refused
    assert "1 letter redriven" in plugin.run("dead-letters", "redrive", NAME)
    rows = stream.bench.aws.dynamodb.scan(TableName=stream.sink, ConsistentRead=True)["Items"]
    redriven = [json.loads(row["row"]["S"])["numbers"] for row in rows if "-redrive/" in row["id"]["S"]]
    assert redriven == [[POISON]]
    plugin.bench.until("no pod of the redrive", lambda: seen.pods("redrive") == [])
    assert seen.ready()


def test_a_name_that_is_not_there_is_compared_with_others(plugin: Plugin) -> None:
    assert f"did you mean {NAME}?" in plugin.run("status", "sen", code=65)
