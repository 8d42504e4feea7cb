"""What is wrong with tables that the real systems wrote: known, because the scenario that made each of them is."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints.diagnose.model import Finding, Observation, Severity
from sluice_checkpoints.diagnose.rules import diagnose
from sluice_checkpoints.dynamodb.source_tables import key_schema
from sluice_checkpoints.formats import detect, nifi
from sluice_checkpoints.formats.snapshot import RawItem
from sluice_checkpoints.stream.catalog import shard_from_reply
from sluice_checkpoints.stream.model import ShardList, StreamIdentity
from sluice_lab.fakes.migration import MemorySources

LOST, WILL_BE_LOST, SUSPECTED, WARNING, INFO = Severity
GOLDEN = Path(__file__).parents[1] / "golden"
Wrong = set[tuple[str, Severity, int | None]]  # kind, severity, number of the shard


def never_acknowledged(*shards: int) -> Wrong:
    return {("never-acknowledged", WILL_BE_LOST, i) for i in shards}


# NiFi's migration drops what is no number: the finished shards 0 and 1, and 6, which had not begun.
DROPPED: Wrong = {("row-missing", WARNING, 0), ("hole", WILL_BE_LOST, 1), ("child-without-row", WILL_BE_LOST, 6)}
INTERRUPTED: Wrong = {("interrupted-migration", WILL_BE_LOST, None)}
KCL: dict[str, Wrong] = {
    "kcl1-graceful": set(),
    "kcl1-sigkill": set(),  # owners everywhere, one shard at 13 of 40, its child not begun: in order
    "kcl2-graceful": set(),
    "kcl2-multistream": set(),
    "kcl3-graceful": set(),
    "kcl34-graceful": set(),
    "kcl3-sigkill": set(),
    "kcl3-latest": never_acknowledged(0, 1, 2, 3),
    "kcl3-pending": {("left-behind", WARNING, 0), ("left-behind", WARNING, 3)},
}
REST: dict[str, Wrong] = {
    "gokcl-v1-sigkill": {("order", WARNING, 2)} | never_acknowledged(5),
    "gokcl-v2-graceful": set(),
    "gokcl-v2-noend": never_acknowledged(4, 5, 6),
    "kinsumer-snowplow-manual": never_acknowledged(4, 5, 6),
    "kinsumer-snowplow-sigkill": set(),
    "kinsumer-twitch-graceful": set(),
    "nifi-new-graceful": {("order", INFO, 0), ("order", INFO, 1), ("order", INFO, 2)},
    "nifi-migrate-ok": DROPPED,
    "nifi-nifi16003": DROPPED | INTERRUPTED,
    "nifi-h1-scan-fails": INTERRUPTED,
}


def item(stored: dict[str, dict[str, Any]]) -> RawItem:
    return {name: {"B": base64.b64decode(tagged["B"])} if "B" in tagged else tagged for name, tagged in stored.items()}


def findings(dump: str, **more: Any) -> tuple[Finding, ...]:
    document = json.loads((GOLDEN / f"{dump}.json").read_text())
    tables = {name: (key_schema(t["describe"]), [item(i) for i in t["items"]]) for name, t in document["tables"].items()}
    told = next(iter(document["streams"].values()))
    created = round(told["summary"]["StreamCreationTimestamp"] * 1000)
    stream = StreamIdentity(told["summary"]["StreamName"], told["summary"]["StreamARN"], created, 86_400_000, "ACTIVE")
    chosen, snapshot = detect.take_snapshot(MemorySources(tables), dump + ("_checkpoints" if dump.startswith("kinsumer") else ""))
    shards = ShardList(tuple(map(shard_from_reply, told["shards"])), 0)
    oldest = {shard: records[0]["seq"] for shard, records in told["records"].items() if records}
    stopped = nifi.interrupted(snapshot, stream) if chosen.name == "nifi" else None
    return diagnose(Observation(chosen.read(snapshot, stream), shards, oldest=oldest, interrupted=stopped, **more))


def named(found: tuple[Finding, ...]) -> Wrong:
    return {(f.kind, f.severity, int(f.shard[-12:]) if f.shard else None) for f in found}


@pytest.mark.parametrize(("dump", "wrong"), (KCL | REST).items())
def test_a_table_shows_what_its_scenario_did_to_it(dump: str, wrong: Wrong) -> None:
    """And nothing else: an owner left behind, foreign rows and the end of a process are no fault."""
    assert named(findings(dump)) == wrong


@pytest.mark.parametrize("dump", ["gokcl-v2-noend", "nifi-migrate-ok", "kinsumer-snowplow-manual"])
def test_who_starts_at_the_beginning_loses_nothing(dump: str) -> None:
    assert not [f for f in findings(dump, initial="trim-horizon") if f.severity.loss]


def test_nifi_16003_tells_where_the_only_copy_is() -> None:
    (finding,) = (f for f in findings("nifi-nifi16003") if f.kind == "interrupted-migration")
    for words in ("nifi-nifi16003_migration", "is complete", "holds 4 positions", "the only copy", "deletes that", "shardId-000000000005"):
        assert words in finding.text
    assert finding.advice.startswith("do not start NiFi")


def test_an_empty_copy_beside_a_whole_kcl_table_is_told_before_nifi_deletes_the_latter() -> None:
    """As it did: 4 of 4 checkpoints were lost."""
    (finding,) = findings("nifi-h1-scan-fails")
    for words in ("still KCL's", "not complete", "holds 0 positions", "skips the copy, deletes the KCL table", "shardId-000000000002"):
        assert words in finding.text
