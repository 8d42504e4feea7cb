"""A checkpoint table as a document for people and programs: the position of each shard, and the owner. Reads only."""

from __future__ import annotations

from collections.abc import Mapping

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.position import END
from sluice_checkpoints.protocol import versions
from sluice_checkpoints.protocol.batch_writes import BatchSteps
from sluice_checkpoints.protocol.rows import VERSIONS, ConsumerRow, Item, MigrationRow, ShardRow
from sluice_checkpoints.protocol.table import Table
from sluice_checkpoints.protocol.versions import Version


def document(table: Table) -> Item:
    """The document of `show --json`, which is the positions file. Fields are added in later versions, never renamed.

    Before a migration is complete there is no consumer: `generation`, `committed` and `released` are null then.
    `consistent` is false if a batch was committed, or the lease taken, while the rows were read: then positions may be of several batches.

    Raises:
        Refused: the table holds neither a consumer nor a migration.
    """
    store = MigrationStore(table)
    consumer, claim = store.consumer(), store.claim()
    if consumer is None and claim is None:
        raise Refused(f"table {table.name} holds neither a consumer nor a migration: it is not a checkpoint table of Sluice, or still empty")
    committed, contents = consumer.committed if consumer else 0, store.contents()
    return {
        **_consumer(consumer),
        "consistent": _place(consumer) == _place(store.consumer()),
        "lease": _lease(consumer) if consumer else None,
        "lastCommit": _last_commit(consumer) if consumer else None,
        "open": _open(contents.rows, committed),
        "versions": _versions(store.table, consumer) if consumer else [],
        "migration": _migration(claim.row) if claim else None,
        "shards": _shards(contents.rows, committed),
        "folded": {"shards": sorted(contents.folded.keys() - contents.rows.keys()), "notes": dict(contents.notes)},
    }


def _place(row: ConsumerRow | None) -> tuple[int, int] | None:
    return (row.generation, row.committed) if row else None


def _consumer(row: ConsumerRow | None) -> Item:
    return {
        "generation": row.generation if row else None,
        "committed": row.committed if row else None,
        "released": row.released if row else None,
        "state": row.state if row else None,
        "consumerId": row.consumer_id if row else None,
        "tableId": row.table_id if row else None,
        "stream": row.stream_arn if row else None,
        "streamCreated": row.stream_created if row else None,
        "holder": row.holder if row else None,
        "owner": row.owner if row else None,
        "cluster": row.cluster if row else None,
        "lastReset": row.last_reset if row else None,
    }


def _lease(row: ConsumerRow) -> Item:
    """Of the last take-over: its time (ISO 8601), the last heartbeat since, and what it promised, both in milliseconds. The clock is its holder's."""
    return {"since": row.updated_at, "beatAt": row.beat_at, "millis": row.lease_millis}


def _last_commit(row: ConsumerRow) -> Item:
    """The last committed batch. `perSecond` counts from the commit before, and is null unless the same epoch made that one."""
    facts = row.commit_facts
    at, former, records = (facts.get(name) for name in ("at", "former", "records"))
    seconds = (at - former) / 1000 if at is not None and former is not None else 0
    rate = round(records / seconds, 1) if records is not None and seconds > 0 else None
    return {"batch": row.committed, "at": at, "records": records, "perSecond": rate}


def _open(rows: Mapping[str, ShardRow], committed: int) -> Item | None:
    """The batch that was begun and is not committed; None: no shard is bound in one."""
    bound = [row for row in rows.values() if row.batch > committed]
    if not bound:
        return None
    return {"batch": max(row.batch for row in bound), "shards": len(bound), "records": sum(row.records for row in bound)}


def _versions(table: Table, row: ConsumerRow) -> list[Item]:
    """The oldest first. `last` is null of the version that continues; `positions` says whether a reset can go back to `first`."""
    known = versions.listed(table.get(VERSIONS))
    ends = [after.first - 1 if after else None for after in (*known[1:], None)][: len(known)]
    kept = {version.generation for version in versions.within_reach(known, row) if versions.kept(BatchSteps(table), version) is not None}
    return [_version(version, last, row.committed) | {"positions": version.generation in kept} for version, last in zip(known, ends, strict=True)]


def _version(version: Version, last: int | None, committed: int) -> Item:
    batches = max(0, (committed if last is None else last) - version.first + 1)
    return {"first": version.first, "last": last, "batches": batches, "hash": version.spec.hash, "image": version.spec.image, "at": version.at}


def _migration(row: MigrationRow) -> Item:
    return {"source": row.source, "format": row.format, "state": row.state, "rows": row.rows, "planDigest": row.plan_digest}


def _shards(rows: Mapping[str, ShardRow], committed: int) -> Item:
    return {i: _stands(rows[i], committed) for i in sorted(rows)}


def _stands(row: ShardRow, committed: int) -> Item:
    lineage = {"parents": sorted(row.parents), "children": sorted(child.id for child in row.children or ())}
    return row.committed_position(committed).to_map() | {"lineage": lineage, "range": _range(row)}


def _range(row: ShardRow) -> Item:
    """The last range that was bound. `behind` is null before the first one, before the first one after a reset, and at the end of the shard."""
    bound = {"batch": row.batch, "joins": row.joins, "records": row.records, "bytes": row.size, "readTo": row.read_to or None}
    return bound | {"behind": None if row.end == END or not row.has_begun else row.behind}
