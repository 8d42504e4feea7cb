"""Every kind of source, written by hand after what the real systems store (the golden dumps show the same shapes).

All are of one stream: shard 0 was split into 2 and 3, shard 1 is open. 0 is finished, 1 is in the middle; of 2 and 3 most systems know only 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrating.stage import Case, Row, Stage, Tables, find, number, one_key, sets, text

from sluice_checkpoints.formats.snapshot import TableKey
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.encoding import item_to_wire
from sluice_checkpoints.protocol.rows import Child, ConsumerRow, ShardRow

# -- KCL ---------------------------------------------------------------------------------------------------------------------------

KCL_KEYS = one_key("leaseKey")
ONE = "shardId-000000000001"


def kcl_row(shard: str, checkpoint: str = "TRIM_HORIZON", sub: int = 0, **more: Any) -> Row:
    numbers = number(checkpointSubSequenceNumber=sub, leaseCounter=7, ownerSwitchesSinceCheckpoint=0)
    return text(leaseKey=shard, checkpoint=checkpoint, leaseOwner="worker-1") | numbers | more


def _leases(stage: Stage, **more: Any) -> list[Row]:
    return [
        kcl_row(stage.zero, "SHARD_END", childShardIds={"SS": [stage.two, stage.three]}, **more),
        kcl_row(stage.one, stage.reached, 3, **more),
        kcl_row(stage.two, parentShardId={"SS": [stage.zero]}, **more),
    ]


def _kcl1(stage: Stage, table: str) -> Tables:
    return {table: (KCL_KEYS, _leases(stage))}


def _kcl2(stage: Stage, table: str) -> Tables:
    rows = _leases(stage)
    for row, shard in zip(rows, stage.stream.list_shards().shards, strict=False):
        row.update(text(startingHashKey=str(shard.starting_hash), endingHashKey=str(shard.ending_hash)))
    rows[1] |= text(pendingCheckpoint=stage.reached) | number(pendingCheckpointSubSequenceNumber=5) | {"pendingCheckpointState": {"B": b"\x00\xff"}}
    return {table: (KCL_KEYS, rows)}


def _kcl34(stage: Stage, table: str) -> Tables:
    state = text(key="Migration3.0", cv="CLIENT_VERSION_3X", mb="worker-1") | number(mts=1)
    stats = text(wid="worker-1") | number(lut=1) | {"sts": {"M": {"C": {"L": [{"N": "52.4"}]}}}, "opr": {"M": {}}}
    return {
        table: (KCL_KEYS, _leases(stage, **number(throughputKBps=0.004))),
        f"{table}-CoordinatorState": (one_key("key"), [state]),
        f"{table}-WorkerMetricStats": (one_key("wid"), [stats]),
    }


def _kcl35(stage: Stage, table: str) -> Tables:
    rows = _leases(stage, **text(entityType="LEASE"))
    del rows[2]["entityType"]  # after an upgrade tables are mixed
    leader = text(leaseKey="Leader", entityType="LEADER", ownerName="worker-1") | {"data": {"B": b"\x01"}}
    version = text(leaseKey="Migration3.0", cv="CLIENT_VERSION_3X")
    stats = text(leaseKey="worker-1", entityType="WORKER_METRIC_STATS") | number(lut=1)
    return {table: (KCL_KEYS, [leader, *rows, version, stats])}


def _multi(stage: Stage, table: str) -> Tables:
    rows = []
    for stream, epoch in ((stage.identity.name, stage.identity.created_millis // 1000), ("payments", 5)):
        full = f"000000000000:{stream}:{epoch}"
        for row in _leases(stage):
            shard = row["leaseKey"]["S"]
            rows.append(row | text(leaseKey=f"{full}:{shard}", streamName=full, shardId=shard))
    return {table: (KCL_KEYS, rows)}


def _kcl_checkpoint(tables: Tables, case: Case, sequence: str) -> None:
    row = find(tables[case.table][1], ONE)
    row["checkpoint"] = {"S": sequence}
    row["leaseCounter"] = {"N": str(int(row["leaseCounter"]["N"]) + 1)}


def _multi_checkpoint(tables: Tables, case: Case, sequence: str) -> None:
    rows = [row for row in tables[case.table][1] if ":orders:" in row["leaseKey"]["S"]]
    _kcl_checkpoint({case.table: (KCL_KEYS, rows)}, case, sequence)


def _kcl_beat(tables: Tables, case: Case, times: int) -> None:
    row = next(row for row in tables[case.table][1] if "leaseCounter" in row)
    row["leaseCounter"] = {"N": str(100 + times)}


# -- NiFi --------------------------------------------------------------------------------------------------------------------------

NIFI_KEYS = (TableKey("streamName", "HASH", "S"), TableKey("shardId", "RANGE", "S"))
HALF = "_migration"


def _nifi_row(shard: str, **more: dict[str, Any]) -> Row:
    return text(streamName="orders", shardId=shard) | number(lastUpdateTimestamp=1) | more


def _nifi_place(shard: str, sequence: str) -> Row:
    return _nifi_row(shard, **text(sequenceNumber=sequence), **number(subSequenceNumber=0))


def _nifi(stage: Stage, table: str) -> Tables:
    held = text(leaseOwner="node-1") | number(leaseExpiry=1)
    rows = [_nifi_row("__node__#1", **number(nodeHeartbeat=1)), _nifi_place(stage.zero, stage.last), _nifi_place(stage.one, stage.reached) | held]
    return {table: (NIFI_KEYS, rows)}


def _marker() -> Row:
    return _nifi_row("__migration__", **text(migrationStatus="COMPLETE", renameOwner="node-1"), **number(renameStartedAt=1, migrationStartedAt=1))


def _half(stage: Stage) -> list[Row]:
    return [_marker(), _nifi_place(stage.one, stage.reached), _nifi_place(stage.two, stage.begun)]


def _nifi_missing(stage: Stage, table: str) -> Tables:
    return {table + HALF: (NIFI_KEYS, _half(stage))}


def _nifi_empty(stage: Stage, table: str) -> Tables:
    return {table: (NIFI_KEYS, [])} | _nifi_missing(stage, table)


def _nifi_partial(stage: Stage, table: str) -> Tables:
    half = [_marker(), _nifi_place(stage.one, stage.earlier), _nifi_place(stage.two, stage.begun)]
    return {table: (NIFI_KEYS, [_nifi_place(stage.one, stage.reached)]), table + HALF: (NIFI_KEYS, half)}


def _nifi_legacy(stage: Stage, table: str) -> Tables:
    return _kcl1(stage, table) | {table + HALF: (NIFI_KEYS, [_nifi_row("__migration__"), _nifi_place(stage.one, stage.reached)])}


def _nifi_checkpoint(tables: Tables, case: Case, sequence: str) -> None:
    places = [row for name in (case.table, case.table + HALF) if name in tables for row in tables[name][1] if row["shardId"]["S"] == ONE]
    places[0]["sequenceNumber"] = {"S": sequence}


# -- vmware-go-kcl -----------------------------------------------------------------------------------------------------------------


def _go_kcl(stage: Stage, table: str, fraction: str) -> Tables:
    lease = text(AssignedTo="w1", LeaseTimeout=f"2023-11-14T22:12:59{fraction}Z")
    rows = [
        text(ShardID=stage.zero, Checkpoint="SHARD_END", LeaseTimeout=f"2023-11-14T22:12:59{fraction}Z"),
        text(ShardID=stage.one, Checkpoint=stage.reached) | lease,
        text(ShardID=stage.two, ParentShardId=stage.zero) | lease,
    ]
    return {table: (one_key("ShardID"), rows)}


def _go_kcl1(stage: Stage, table: str) -> Tables:
    return _go_kcl(stage, table, "")


def _go_kcl2(stage: Stage, table: str) -> Tables:
    tables = _go_kcl(stage, table, ".644608777")
    tables[table][1][1] |= text(ClaimRequest="w2")
    return tables


def _go_kcl_checkpoint(tables: Tables, case: Case, sequence: str) -> None:
    find(tables[case.table][1], ONE)["Checkpoint"] = {"S": sequence}


def _go_kcl_beat(tables: Tables, case: Case, times: int) -> None:
    find(tables[case.table][1], ONE)["LeaseTimeout"] = {"S": f"2023-11-14T21:{times // 60:02}:{times % 60:02}Z"}


# -- kinsumer ----------------------------------------------------------------------------------------------------------------------


def _kinsumer_row(shard: str, sequence: Row, finished: int | None = None, **more: dict[str, Any]) -> Row:
    end = {"NULL": True} if finished is None else {"N": str(finished)}
    return (
        text(Shard=shard, LastUpdateRFC="Sat, 21 Nov 2026 02:14:22 +0000")
        | number(LastUpdate=1)
        | {"SequenceNumber": sequence, "Finished": end}
        | more
    )


def _kinsumer(stage: Stage, table: str, unstarted: Row) -> Tables:
    owner = text(OwnerName="w1", OwnerID="w1-id")
    rows = [
        _kinsumer_row(stage.zero, {"S": stage.last}, 1_795_227_262_807_746_459),
        _kinsumer_row(stage.one, {"S": stage.reached}, **owner),
        _kinsumer_row(stage.two, unstarted, **owner),
    ]
    application = table.removesuffix("_checkpoints")
    cache = text(Key="ShardCache") | {"ShardIDs": {"L": [{"S": stage.one}]}} | number(LastUpdate=1)
    return {
        table: (one_key("Shard"), rows),
        f"{application}_clients": (one_key("ID"), [text(ID="w1-id", Name="w1") | number(LastUpdate=1)]),
        f"{application}_metadata": (one_key("Key"), [text(Key="Leader", ID="w1-id") | number(LastUpdate=1), cache]),
    }


def _twitch(stage: Stage, table: str) -> Tables:
    return _kinsumer(stage, table, {"S": "LATEST"})


def _snowplow(stage: Stage, table: str) -> Tables:
    return _kinsumer(stage, table, {"NULL": True})


def _kinsumer_checkpoint(tables: Tables, case: Case, sequence: str) -> None:
    find(tables[case.table][1], ONE)["SequenceNumber"] = {"S": sequence}


# -- Sluice ------------------------------------------------------------------------------------------------------------------------


def _sluice(stage: Stage, table: str) -> Tables:
    """A consumer that died in its batch 8: of shard 1 it had bound a range, which comes again."""
    stream, at = stage.identity, Position.after
    children = tuple(Child(i, frozenset({stage.zero})) for i in (stage.two, stage.three))
    rows = [
        ConsumerRow("consumer-1", stream.arn, stream.created_millis, 3, "t", 70, 45_000, committed=7, bootstrapped=True).to_item(),
        ShardRow(stage.zero, at(stage.last), END, 3, batch=7, children=children).to_item(),
        ShardRow(stage.one, at(stage.earlier), at(stage.reached), 3, batch=8, first=stage.reached, records=1).to_item(),
        ShardRow(stage.two, TRIM_HORIZON, TRIM_HORIZON, 3, joins=9, parents=frozenset({stage.zero})).to_item(),
        ShardRow(stage.three, TRIM_HORIZON, TRIM_HORIZON, 3, joins=9, parents=frozenset({stage.zero})).to_item(),
    ]
    return {table: (one_key("id"), [dict(item_to_wire(row)) for row in rows])}


def _sluice_checkpoint(tables: Tables, case: Case, sequence: str) -> None:
    rows = tables[case.table][1]
    shard, consumer = find(rows, f"shard/{ONE}"), find(rows, "consumer")
    committed = int(consumer["committed"]["N"]) + 2
    consumer |= number(committed=committed, counter=int(consumer["counter"]["N"]) + 1)
    end: Mapping[str, Any] = text(at="AFTER", sequence=sequence)
    shard |= number(batch=committed) | {"start": shard["end"], "end": {"M": end}}


CASES = (
    Case("KCL 1", "orders-kcl", _kcl1, _kcl_checkpoint, _kcl_beat),
    Case("KCL 2", "orders-kcl", _kcl2, _kcl_checkpoint, _kcl_beat),
    Case("KCL 3.4", "orders-kcl", _kcl34, _kcl_checkpoint, sets("-WorkerMetricStats", "worker-1", "lut")),
    Case("KCL 3.5", "orders-kcl", _kcl35, _kcl_checkpoint, sets("", "WORKER_METRIC_STATS", "lut")),
    Case("KCL multi-stream", "orders-kcl", _multi, _multi_checkpoint, _kcl_beat),
    Case("NiFi", "orders-nifi", _nifi, _nifi_checkpoint, sets("", "__node__#1", "nodeHeartbeat")),
    Case("NiFi interrupted, main table missing", "orders-nifi", _nifi_missing, _nifi_checkpoint, sets(HALF, "__migration__", "renameStartedAt")),
    Case("NiFi interrupted, main table empty", "orders-nifi", _nifi_empty, _nifi_checkpoint, sets(HALF, "__migration__", "renameStartedAt")),
    Case("NiFi interrupted, main table partial", "orders-nifi", _nifi_partial, _nifi_checkpoint, sets("", ONE, "leaseExpiry")),
    Case("NiFi interrupted, KCL table whole", "orders-nifi", _nifi_legacy, _kcl_checkpoint, sets(HALF, "__migration__", "migrationStartedAt")),
    Case("vmware-go-kcl 1", "orders-go", _go_kcl1, _go_kcl_checkpoint, _go_kcl_beat),
    Case("vmware-go-kcl 2", "orders-go", _go_kcl2, _go_kcl_checkpoint, _go_kcl_beat),
    Case("kinsumer of twitchscience", "orders_checkpoints", _twitch, _kinsumer_checkpoint, sets("_clients", "w1-id", "LastUpdate")),
    Case("kinsumer of snowplow", "orders_checkpoints", _snowplow, _kinsumer_checkpoint, sets("_clients", "w1-id", "LastUpdate")),
    Case("Sluice", "orders-sluice", _sluice, _sluice_checkpoint, sets("", "consumer", "counter")),
)
KCL1 = CASES[0]
