"""Positions that are moved on a real cluster: a bad deploy is undone, and a stream is read again from a time; counted by the producer's log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from cluster_bench import Bench
from rules_world import JVM, MODULE, Subject, World, iso, moment, table, world

from sluice_lab.machine import processes
from sluice_lab.scenario import account, delivered, environment
from sluice_lab.scenario.account import AccountInput, Delivered, Record
from sluice_lab.scenario.checkpoints import Checkpoints

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

NAME, UNDO = "moved", "undo"
ON_NODE, IN_POD = "/var/local/sluice-positions", "/sink"
# What a person does with the statements: look at them, then run them.
PRINT = "python -m sluice_consumer rollback-sink --config /etc/sluice-undo/config.json --to-batch {}"
ROLLBACK = f"{PRINT} >/tmp/undo.sh; cat /tmp/undo.sh; sh -e /tmp/undo.sh"


@dataclass
class Life:
    """One consumer's life, with its sink on the node.

    Attributes:
        good, bad, later: records that were put under the first version, under the bad one, and from the time of the second move on.
        first, last: batches of the bad version.
        since: the time of the second move.
    """

    world: World
    home: Path
    good: list[Record] = field(default_factory=list)
    bad: list[Record] = field(default_factory=list)
    later: list[Record] = field(default_factory=list)
    first: int = 0
    last: int = 0
    since: str = ""
    rollback: str = ""

    @property
    def subject(self) -> Subject:
        return self.world.subject(NAME)

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.world.bench.aws.dynamodb, table(NAME))

    def on_node(self, script: str) -> str:
        return processes.run("docker", "exec", self.world.bench.cluster.node, "sh", "-c", script)

    def manifest(self) -> dict[str, Any]:
        found = self.world.manifest(NAME)
        found["spec"]["pipeline"] = self.version("right")
        for role in ("driver", "executor"):
            template = found["spec"][role]["podTemplate"]["spec"]
            (container,) = template["containers"]
            container["volumeMounts"] = [*container["volumeMounts"], {"name": "sink", "mountPath": IN_POD}]
            template["volumes"] = [*template["volumes"], {"name": "sink", "hostPath": {"path": ON_NODE, "type": "Directory"}}]
        return found

    @staticmethod
    def version(name: str) -> dict[str, Any]:
        """A pipeline without code, but for the transform that makes it right or wrong."""
        return {"entrypoint": "sluice_consumer.sinks:parquet", "args": {"path": f"file://{IN_POD}", "transform": f"{MODULE}:{name}"}}

    def put(self) -> list[Record]:
        return self.world.put()

    def all_read(self) -> bool:
        return not account.behind(self.world.producer.last_positions(), self.checkpoints.shards())

    def read_to_the_end(self) -> None:
        self.world.bench.until("every record behind a checkpoint", self.all_read)

    def delivered(self) -> list[Delivered]:
        self.home.mkdir(exist_ok=True)
        processes.run("rm", "-rf", str(self.home / "sink"))
        processes.run("docker", "cp", f"{self.world.bench.cluster.node}:{ON_NODE}", str(self.home / "sink"))
        return delivered.read(self.home / "sink")

    def wrong(self) -> int:
        """Rows of the bad version in the copy that `delivered` made, in files that a manifest names."""
        sink = self.home / "sink"
        files = [sink / file["path"] for manifest in sink.glob("_sluice/*/*.json") for file in json.loads(manifest.read_text())["files"]]
        return sum(sum(pyarrow.parquet.read_table(file, columns=["wrong"]).column("wrong").to_pylist()) for file in files)

    def folders(self) -> set[int]:
        return {int(folder.name) for folder in (self.home / "sink").glob("*/*") if folder.name.isdigit()}

    def moved(self, id_: str) -> bool:
        found = self.subject.status.get("position", {})
        return bool((found.get("id"), found.get("state")) == (id_, "Complete"))

    def account(self, produced: list[Record], found: list[Delivered]) -> account.Account:
        return account.compare(AccountInput(produced, {}, found, self.world.stream.parents()))

    def plan(self, id_: str) -> dict[str, Any]:
        found = self.world.bench.aws.dynamodb.get_item(TableName=table(NAME), Key={"id": {"S": f"reset/{id_}/0"}}, ConsistentRead=True)
        return {name: value.get("S") or int(value.get("N", 0)) for name, value in found["Item"]["result"]["M"].items()}


@pytest.fixture(scope="module")
def life(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    """A consumer that has read with its first version, then with a bad one, over a split."""
    with world(bench, "positions", shards=2) as found:
        one = Life(found, tmp_path_factory.mktemp("moved") / "copy")
        one.on_node(f"rm -rf {ON_NODE} && install --directory --mode=0777 {ON_NODE}")
        try:
            one.good = one.put()
            bench.apply(one.manifest())
            bench.until("the first version", lambda: one.subject.ready() and one.all_read())
            one.subject.patch(pipeline=one.version("wrong"))
            bench.until("the second version", lambda: len(one.checkpoints.shown()["versions"]) == 2)
            one.bad = one.put()
            found.stream.split(0)
            one.bad += one.put()
            one.read_to_the_end()
            yield one
        finally:
            bench.kubectl("delete", "kinesisconsumer", NAME, "--ignore-not-found", "--timeout=300s")
            bench.kubectl("delete", f"pod/{UNDO}", f"configmap/{UNDO}", "--ignore-not-found", "--timeout=60s")
            one.on_node(f"rm -rf {ON_NODE}")


@pytest.fixture(scope="module")
def undone(life: Life) -> Life:
    """As docs/how-to/undo-a-deploy.md: find the first batch, stop, roll the sink back, move the positions with the good version."""
    bench = life.world.bench
    (driver,) = life.subject.pods("driver")
    life.subject.patch(suspend=True)
    bench.until("no driver", lambda: life.subject.uids("driver") == {})
    shown = life.checkpoints.shown()
    assert shown["open"] is None
    life.first, life.last = shown["versions"][-1]["first"], shown["committed"]
    life.rollback = rolled_back(life, driver["metadata"]["annotations"]["sluice.dev/config"])
    life.subject.patch(suspend=False, pipeline=life.version("right"), position={"id": UNDO, "to": {"batch": life.first}})
    bench.until("the move", lambda: life.moved(UNDO))
    life.read_to_the_end()
    return life


def rolled_back(life: Life, config: str) -> str:
    """Runs the statements that `rollback-sink` prints, in a pod of the consumer's image; returns its log."""
    bench, settings = life.world.bench, {"name": "config", "configMap": {"name": UNDO}}
    env = [{"name": key, "value": value} for key, value in environment.CREDENTIALS.items()]
    container = {
        "name": UNDO,
        "image": bench.consumer_image(),
        "args": ["sh", "-ec", ROLLBACK.format(life.first)],
        "env": [*env, JVM],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/sluice-undo"}, {"name": "sink", "mountPath": IN_POD}],
    }
    volumes = [settings, {"name": "sink", "hostPath": {"path": ON_NODE, "type": "Directory"}}]
    spec = {"restartPolicy": "Never", "serviceAccountName": "sluice-consumer", "containers": [container], "volumes": volumes}
    bench.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": UNDO}, "data": {"config.json": config}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": UNDO}, "spec": spec},
    )

    def phase() -> str:
        return next(str(pod["status"].get("phase")) for pod in bench.get("pods") if pod["metadata"]["name"] == UNDO)

    bench.until("the rollback", lambda: phase() in {"Succeeded", "Failed"})
    said = bench.kubectl("logs", UNDO)
    assert phase() == "Succeeded", said
    return said


@pytest.fixture(scope="module")
def again(undone: Life) -> Life:
    """Records come before a time and after it, over a split and a merge; then the positions move to that time."""
    found = undone.world
    undone.put()
    since = moment()
    undone.later = undone.put()
    found.stream.split(1)
    undone.later += undone.put()
    found.stream.merge(2, 3)
    undone.later += undone.put()
    undone.read_to_the_end()
    undone.since = iso(since)
    undone.subject.patch(position={"id": "again", "to": {"batch": None, "timestamp": undone.since}})
    found.bench.until("the second move", lambda: undone.moved("again"))
    undone.read_to_the_end()
    return undone


def test_the_table_names_the_batch_at_which_the_bad_version_began(undone: Life) -> None:
    versions = undone.checkpoints.shown()["versions"]
    assert [(each["first"], each["last"]) for each in versions[:2]] == [(1, undone.first - 1), (undone.first, undone.last)]
    assert (versions[2]["first"], versions[2]["hash"]) == (undone.last + 1, versions[0]["hash"])
    assert versions[1]["hash"] != versions[0]["hash"]
    assert undone.rollback.count("rm -r -- ") >= 1


def test_exactly_the_records_of_the_bad_version_come_again_and_the_sink_is_right(undone: Life) -> None:
    found, produced = undone.delivered(), [*undone.good, *undone.bad]
    assert undone.wrong() == 0
    assert undone.folders().isdisjoint(range(undone.first, undone.last + 1))
    assert undone.account(produced, found).right
    assert {each.record for each in found if each.batch > undone.last} == set(undone.bad)
    assert {each.record for each in found if each.batch < undone.first} == set(undone.good)


def test_every_record_since_the_time_comes_once_more_parents_first(again: Life) -> None:
    found, last = again.delivered(), again.subject.status["position"]["moved"]["batch"]
    assert again.account(again.later, [each for each in found if each.batch > last]).right
    assert again.account(again.world.producer.produced, [each for each in found if each.batch <= last]).right
    times = Counter(each.record for each in found)
    assert {record for record, count in times.items() if count > 1} == set(again.later)


def test_status_and_event_say_what_the_plan_says(again: Life) -> None:
    position, plan = again.subject.status["position"], again.plan("again")
    assert {"to", "shards", "batch", "digest"} <= position["moved"].keys() & plan.keys()
    assert {name: plan[name] for name in position["moved"]} == position["moved"]
    assert (position["moved"]["to"], position["earlier"]) == (again.since, [UNDO])
    said = [text for text in again.world.bench.events(NAME) if text.startswith("ResetComplete: ")]
    assert sorted(text.split(":")[1].strip() for text in said) == ["again", UNDO]
    assert position["message"] in "".join(said)


def test_an_id_that_was_carried_out_moves_nothing_whatever_it_asks_for(again: Life) -> None:
    subject, bench = again.subject, again.world.bench
    attempts, before = subject.attempts(), len(again.delivered())
    subject.patch(position={"id": "again", "to": {"timestamp": None, "latest": True}})
    bench.until("an event", lambda: any(text.startswith("PositionIgnored: ") for text in bench.events(NAME)))
    new = again.put()
    again.read_to_the_end()
    assert len(again.delivered()) == before + len(new)
    assert (subject.attempts(), json.dumps(subject.status["position"]["state"])) == (attempts, '"Complete"')
