"""What the tests of the operator's rules have in common: a stream, consumers side by side that keep what they read, and a hand on each of them."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster_bench import Bench, condition, consumer, is_ready

from sluice_lab.scenario import kcl_table, records
from sluice_lab.scenario.account import Record
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.installing import NAMESPACE
from sluice_lab.scenario.producer import Producer, last_positions
from sluice_lab.scenario.topology import Stream

MODULE = "rules_pipeline"
APP = "/opt/sluice/app"  # where the image looks for the user's code
LEASE_SECONDS = 10
APART = 2.0  # seconds between what is put before a time, and what is put after it
# Compiled once and quickly: these JVMs live for a minute, and there are many of them on two cores.
JVM = {"name": "JAVA_TOOL_OPTIONS", "value": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def moment() -> datetime:
    """A time with a distance to whatever is put before it and after it. The emulator runs by this machine's clock."""
    threading.Event().wait(APART)
    now = datetime.now(UTC)
    threading.Event().wait(APART)
    return now


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Subject:
    bench: Bench
    name: str

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.bench.resource(self.name).get("status", {})
        return found

    def condition(self, kind: str) -> dict[str, Any]:
        return self.bench.condition(self.name, kind)

    def pods(self, role: str, kind: str = "pods") -> list[dict[str, Any]]:
        return self.bench.get(kind, f"--selector=sluice.dev/consumer={self.name},sluice.dev/role={role}")

    def uids(self, role: str) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in self.pods(role)}

    def nodes(self) -> set[str]:
        return {pod["spec"].get("nodeName", "") for role in ("driver", "executor") for pod in self.pods(role)}

    def ready(self) -> bool:
        return is_ready(self.bench.resource(self.name))

    def seen(self) -> bool:
        found = self.bench.resource(self.name)
        return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])

    def settled(self, executors: int) -> bool:
        found = self.bench.resource(self.name)
        at_ease = is_ready(found) and not condition(found, "Reconciling")
        return at_ease and found["status"]["replicas"] == executors == self.registered()

    def registered(self) -> int:
        notes = [pod["metadata"]["annotations"].get("sluice.dev/report") for pod in self.pods("driver")]
        return int(json.loads(notes[0]).get("executors", 0)) if notes and notes[0] else 0

    def warm(self, executors: int) -> bool:
        """Whether its driver has said of so many executors that they are: only then do batches go to them."""
        log = "".join(self.bench.kubectl("logs", name) for name in self.uids("driver"))
        said = re.findall(r"executors \[(.*)\] are warm", log)
        return bool(said) and len(said[-1].split(", ")) == executors

    def attempts(self) -> int:
        """Drivers that were ever begun: each is written down before its pod is made."""
        return int(self.status.get("driver", {}).get("attempt", 0))

    def scale(self, replicas: int) -> None:
        self.bench.kubectl("scale", "kinesisconsumer", self.name, f"--replicas={replicas}")

    def patch(self, **spec: Any) -> None:
        self.bench.kubectl("patch", "kinesisconsumer", self.name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def annotate(self, note: str) -> None:
        self.bench.kubectl("annotate", "kinesisconsumer", self.name, f"sluice.dev/{note}", "--overwrite")

    def delete(self) -> None:
        """Deletes it. When it is gone nothing of it runs, and what has ended goes too."""
        self.bench.kubectl("delete", "kinesisconsumer", self.name, "--timeout=300s")
        assert [pod["metadata"]["name"] for pod in self.left() if pod["status"].get("phase") in {"Pending", "Running"}] == []
        self.bench.until(f"nothing left of {self.name}", lambda: self.left() == [])

    def left(self) -> list[dict[str, Any]]:
        return [*self.bench.get("pods", f"--selector=sluice.dev/consumer={self.name}"), *self.pods("migration", "jobs")]


@dataclass(frozen=True)
class World:
    bench: Bench
    stream: Stream
    producer: Producer

    @property
    def sink(self) -> str:
        """The table that consumers keep their records in, one for all of a module."""
        return f"sink-{self.stream.name}"

    def subject(self, name: str) -> Subject:
        return Subject(self.bench, name)

    def manifest(self, name: str, args: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        usual = {"batch": {"intervalSeconds": 1}, "leaseDurationSeconds": LEASE_SECONDS, "restart": {"backoffSeconds": 1, "maxBackoffSeconds": 4}}
        found = consumer(self.bench, name, **(usual | spec))
        found["spec"]["stream"] |= {"name": self.stream.name}
        found["spec"]["pipeline"] = {"entrypoint": f"{MODULE}:keep", "args": self.args(**(args or {}))}
        for role in ("driver", "executor"):
            template = found["spec"][role]["podTemplate"]["spec"]
            (container,) = template["containers"]
            container |= {"volumeMounts": [{"name": "app", "mountPath": APP}], "env": [*container["env"], JVM]}
            template["volumes"] = [{"name": "app", "configMap": {"name": MODULE.replace("_", "-")}}]
        return found

    def args(self, **more: Any) -> dict[str, Any]:
        return {"dynamodb": self.bench.aws.dynamodb_endpoint, "table": self.sink, **more}

    def put(self, count: int = 32) -> list[Record]:
        return self.producer.put(records.hash_keys(), count)

    def until(self, what: str, ready: Callable[[], Any]) -> Any:
        """Waits while records come on the first shard and the last: a search asks other shards for some, and waits long where there are none."""
        first, *_, last = records.hash_keys()
        return self.bench.until(what, lambda: self.producer.put((first, last), 2) and ready())

    def leases(self) -> list[kcl_table.Item]:
        return kcl_table.unread(self.stream.shards())

    def kept(self, name: str) -> list[dict[str, Any]]:
        """What a consumer has kept, a row a batch: numbers, by which driver, with which label, and when (seconds since 1970)."""
        ours = Checkpoints(self.bench.aws.dynamodb, table(name)).shown()["consumerId"]
        rows = self.bench.aws.dynamodb.scan(TableName=self.sink, ConsistentRead=True)["Items"]
        return [json.loads(row["row"]["S"]) for row in rows if row["id"]["S"].startswith(f"{ours}/")]

    def missing(self, name: str) -> list[int]:
        return sorted({record.n for record in self.producer.produced} - set(self._numbers(name)))

    def skipped(self, name: str) -> list[int]:
        """Numbers that are not kept though one that came after them on their shard is."""
        kept = set(self._numbers(name))
        reached = last_positions(record for record in self.producer.produced if record.n in kept)
        earlier = (record for record in self.producer.produced if record.shard in reached and record.position < reached[record.shard])
        return sorted(record.n for record in earlier if record.n not in kept)

    def twice(self, name: str) -> list[int]:
        return sorted(n for n, count in Counter(self._numbers(name)).items() if count > 1)

    def bound(self, name: str) -> int:
        """Shards whose reading in a batch has begun that is not committed yet: tasks are at work."""
        rows = self.bench.aws.dynamodb.scan(TableName=table(name), ConsistentRead=True)["Items"]
        committed = next(int(row["committed"]["N"]) for row in rows if row["id"]["S"] == "consumer")
        return sum(int(row["batch"]["N"]) > committed and int(row["records"]["N"]) > 0 for row in rows if "batch" in row)

    def _numbers(self, name: str) -> list[int]:
        return [n for row in self.kept(name) for n in row["numbers"]]


def table(name: str) -> str:
    return f"sluice_{NAMESPACE}_{name}"


def pause(status: Mapping[str, Any], failures: int) -> float | None:
    """Seconds from the end of a driver to the beginning of the next, as announced after so many failures; None: nothing is announced."""
    restarts, end = status.get("restarts") or {}, status.get("driver", {}).get("exit")
    if restarts.get("count", 0) < failures or not restarts.get("nextAt") or not end:
        return None
    assert restarts["count"] == failures
    return (datetime.fromisoformat(restarts["nextAt"]) - datetime.fromisoformat(end["at"])).total_seconds()


@contextmanager
def world(bench: Bench, name: str, shards: int = 4) -> Iterator[World]:
    """A stream of that name with an empty sink; afterwards every consumer is gone, with its table: another world may use its name."""
    with Stream(bench.aws.kinesis, name).existing(shards) as stream:
        yield from _in(bench, stream)


def _in(bench: Bench, stream: Stream) -> Iterator[World]:
    found = World(bench, stream, Producer(bench.aws.kinesis, stream.name))
    key = {"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}
    bench.aws.dynamodb.create_table(TableName=found.sink, BillingMode="PAY_PER_REQUEST", **key)
    code = (Path(__file__).parent / f"{MODULE}.py").read_text()
    app = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": MODULE.replace("_", "-")}, "data": {f"{MODULE}.py": code}}
    bench.apply(app)
    yield found
    bench.kubectl("delete", "kinesisconsumers", "--all", "--timeout=300s")
    bench.kubectl("delete", "configmap", MODULE.replace("_", "-"), "--ignore-not-found")
    for left in bench.aws.dynamodb.get_paginator("list_tables").paginate().search(f"TableNames[?starts_with(@, '{table('')}')]"):
        bench.aws.dynamodb.update_table(TableName=left, DeletionProtectionEnabled=False)
        bench.aws.dynamodb.delete_table(TableName=left)
