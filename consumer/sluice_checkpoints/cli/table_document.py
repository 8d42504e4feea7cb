"""A checkpoint table as a document for people and programs: the position of each shard, and the owner. Reads only."""

from __future__ import annotations

from collections.abc import Mapping

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.protocol.rows import ConsumerRow, Item, MigrationRow, ShardRow
from sluice_checkpoints.protocol.table import Table


def document(table: Table) -> Item:
    """The document of `show --json`. Fields are added in later versions, never renamed.

    Before a migration is complete there is no consumer: `generation`, `committed` and `released` are null then.

    Raises:
        Refused: the table holds neither a consumer nor a migration.
    """
    store = MigrationStore(table)
    consumer, claim = store.consumer(), store.claim()
    if consumer is None and claim is None:
        raise Refused(f"table {table.name} holds neither a consumer nor a migration: it is not a checkpoint table of Sluice, or still empty")
    committed, found = consumer.committed if consumer else 0, store.contents()
    return {
        **_consumer(consumer),
        "migration": _migration(claim.row) if claim else None,
        "shards": _shards(found.rows, committed),
        "folded": {"shards": sorted(found.folded.keys() - found.rows.keys()), "notes": dict(found.notes)},
    }


def _consumer(row: ConsumerRow | None) -> Item:
    return {
        "generation": row.generation if row else None,
        "committed": row.committed if row else None,
        "released": row.released if row else None,
        "state": row.state if row else None,
        "consumerId": row.consumer_id if row else None,
        "stream": row.stream_arn if row else None,
        "streamCreated": row.stream_created if row else None,
        "holder": row.holder if row else None,
        "owner": row.owner if row else None,
        "cluster": row.cluster if row else None,
    }


def _migration(row: MigrationRow) -> Item:
    return {"source": row.source, "format": row.format, "state": row.state, "rows": row.rows, "planDigest": row.plan_digest}


def _shards(rows: Mapping[str, ShardRow], committed: int) -> Item:
    return {i: _stands(rows[i], committed) for i in sorted(rows)}


def _stands(row: ShardRow, committed: int) -> Item:
    lineage = {"parents": sorted(row.parents), "children": sorted(child.id for child in row.children or ())}
    return row.committed_position(committed).to_map() | {"lineage": lineage}
