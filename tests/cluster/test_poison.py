"""A record that `process` cannot deal with, and a `process` that does not come back: what a person sees of both, and that the rest goes on."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_bench import Bench, condition
from operating import helm
from patience import SLOW
from rules_world import MODULE, Subject, World, pause, world

from sluice_lab.scenario.account import Record
from sluice_lab.scenario.installing import NAMESPACE

pytestmark = pytest.mark.cluster

REFUSES, HANGS = "refuses", "hangs"
POISON, SOME = 5, 16  # a number inside of an aggregate; Kinesis records on both shards
ATTEMPTS, LETTERS = 2, "/letters"
LIMIT, BACKOFF, SLACK = round(30 * SLOW), 5, 8  # seconds; the first batch of an executor takes ten, where cores are few
PORT = 9404


@pytest.fixture(scope="module")
def poisoned(bench: Bench) -> Iterator[World]:
    helm(bench, driverMetrics={"port": PORT})
    with world(bench, "poison", shards=2) as found:
        bench.apply(refusing(found), hanging(found))
        bench.until("both Ready", lambda: all(found.subject(name).settled(1) for name in (REFUSES, HANGS)))
        found.put(SOME)
        yield found
    helm(bench)


def refusing(found: World) -> dict[str, Any]:
    on_error = {"attempts": ATTEMPTS, "deadLetter": {"path": f"file://{LETTERS}"}}
    manifest = found.manifest(REFUSES, args={"poison": POISON}, onError=on_error)
    manifest["spec"]["pipeline"]["entrypoint"] = f"{MODULE}:refuse"
    template = manifest["spec"]["driver"]["podTemplate"]["spec"]
    template["volumes"] = [*template["volumes"], {"name": "letters", "emptyDir": {}}]
    (container,) = template["containers"]
    container["volumeMounts"] = [*container["volumeMounts"], {"name": "letters", "mountPath": LETTERS}]
    return manifest


def hanging(found: World) -> dict[str, Any]:
    """A consumer whose first driver does not come back from `process`; nothing is done about errors."""
    batch, restart = {"intervalSeconds": 1, "maxSeconds": LIMIT}, {"backoffSeconds": BACKOFF, "maxBackoffSeconds": 60}
    manifest = found.manifest(HANGS, batch=batch, restart=restart)
    manifest["spec"]["pipeline"]["entrypoint"] = f"{MODULE}:hang"
    return manifest


@pytest.fixture(scope="module")
def seen(poisoned: World) -> dict[str, list[dict[str, Any]]]:
    statuses: dict[str, list[dict[str, Any]]] = {REFUSES: [], HANGS: []}

    def over() -> bool:
        for name, found in statuses.items():
            found.append(poisoned.subject(name).status)
        excluded = says(statuses[REFUSES][-1], "PoisonExcluded")
        return bool(excluded) and poisoned.subject(HANGS).attempts() > 1 and poisoned.subject(HANGS).settled(1)

    poisoned.until("a record that is left out, and a second driver", over)
    return statuses


def says(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return condition({"status": status}, kind)


def poison(found: World) -> Record:
    return next(record for record in found.producer.produced if record.n == POISON)


def in_driver(subject: Subject, *command: str) -> str:
    (driver,) = subject.uids("driver")
    return subject.bench.kubectl("exec", driver, "--", *command)


def test_nobody_has_to_do_anything(seen: dict[str, list[dict[str, Any]]]) -> None:
    assert [says(status, "Stalled") for found in seen.values() for status in found if says(status, "Stalled")] == []


def test_a_record_that_process_refuses_is_looked_for_and_named(poisoned: World, seen: dict[str, list[dict[str, Any]]]) -> None:
    record, line = poison(poisoned), f"failed (ValueError at /opt/sluice/app/{MODULE}.py:"
    named = f"{record.shard}: record {record.position.sequence}/{record.position.sub} failed "
    looked = [told for status in seen[REFUSES] if (told := says(status, "Isolating"))]
    assert {(told["status"], line in told["message"]) for told in looked} == {("True", True)}
    assert says(seen[REFUSES][-1], "PoisonExcluded")["message"].startswith(named)
    events = poisoned.bench.events(REFUSES)
    assert [text for text in events if text.startswith("Isolating: batch ") and line in text]
    assert [text for text in events if text.startswith(f"PoisonExcluded: {named}")]


def test_all_other_records_come_once_and_the_consumer_goes_on(poisoned: World, seen: dict[str, list[dict[str, Any]]]) -> None:
    assert seen
    subject = poisoned.subject(REFUSES)
    poisoned.put(SOME)
    poisoned.bench.until("every other record", lambda: poisoned.missing(REFUSES) == [POISON])
    poisoned.bench.until("Ready, without lag", lambda: subject.settled(1) and subject.status["stream"]["millisBehindLatest"] == 0)
    assert poisoned.twice(REFUSES) == []
    assert (subject.condition("Isolating"), subject.condition("PoisonExcluded")["status"]) == ({}, "True")
    assert (subject.attempts(), subject.status["restarts"]["count"]) == (1, 0)


def test_its_letter_holds_the_record_and_the_exception(poisoned: World) -> None:
    subject, record = poisoned.subject(REFUSES), poison(poisoned)
    command = ("python", "-m", "sluice_checkpoints", "dead-letters", "list", f"--path=file://{LETTERS}", "--json")
    (letter,) = json.loads(in_driver(subject, *command))["letters"]
    assert (letter["shardId"], letter["sequenceNumber"]) == (record.shard, str(record.position.sequence))
    assert letter["subSequenceNumber"] == record.position.sub
    assert json.loads(base64.b64decode(letter["data"]))["n"] == POISON
    assert letter["error"].rstrip().endswith(f"ValueError: record {POISON} has no temperature")


def test_the_metric_that_an_alert_looks_at_counts_it(poisoned: World) -> None:
    (driver,) = poisoned.subject(REFUSES).uids("driver")
    served = poisoned.bench.kubectl("get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{driver}:{PORT}/proxy/metrics")
    assert "sluice_dead_letters_total 1" in [line.removesuffix(".0") for line in served.splitlines()]


def test_a_process_that_hangs_ends_its_driver_which_says_where_it_stood(poisoned: World, seen: dict[str, list[dict[str, Any]]]) -> None:
    place = f"process is at /opt/sluice/app/{MODULE}.py:"
    status = next(status for status in seen[HANGS] if pause(status, 1))
    assert BACKOFF <= (pause(status, 1) or 0) <= BACKOFF + SLACK
    for kind in ("Ready", "DriverHealthy"):
        told = says(status, kind)
        assert (told["status"], told["reason"], place in told["message"], " in hang" in told["message"]) == ("False", "BatchOverdue", True, True)
    assert [text for text in poisoned.bench.events(HANGS) if text.startswith("DriverFailed: attempt 1 ended with 1: ") and place in text]


def test_the_next_driver_is_given_the_batch_that_did_not_end(poisoned: World, seen: dict[str, list[dict[str, Any]]]) -> None:
    assert seen
    poisoned.bench.until("every record", lambda: poisoned.missing(HANGS) == [])
    assert poisoned.twice(HANGS) == []
    assert {row["by"] for row in poisoned.kept(HANGS)} == {f"{HANGS}-driver-2"}
