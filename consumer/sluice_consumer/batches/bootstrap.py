"""The first start of a consumer: where each shard begins is decided once, written once, and never again (docs/protocol.md, "The first start").

LATEST is pinned to a time here. After a crash, the next epoch finishes the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from sluice_checkpoints.errors import ProtocolViolation, Refused
from sluice_checkpoints.position import END, TRIM_HORIZON, Position
from sluice_checkpoints.protocol.rows import BOOTSTRAP_PREFIX, ConsumerRow, Item, ShardRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import chunks
from sluice_checkpoints.stream.model import Shard, ShardList, StreamIdentity
from sluice_consumer.config import StartConfig

CHUNK = 2000  # shards in a row: well under the 400 KB that an item may have
HOUR_MILLIS = 3_600_000
CLOCK_SLACK_MILLIS = 2000  # Kinesis refuses an AT_TIMESTAMP that lies in its future


@dataclass(frozen=True, slots=True)
class Seed:
    """What makes a bootstrap plan: random ids chosen by the caller, and the stream as it is now."""

    plan: str
    consumer_id: str
    identity: StreamIdentity
    listed: ShardList


def starting_position(start: StartConfig, shard: Shard, t0_millis: int) -> Position:
    """Where a shard that exists at the bootstrap begins: LATEST is T0 for open shards, and END for closed ones."""
    if start.position == "TRIM_HORIZON":
        return TRIM_HORIZON
    if start.position == "LATEST":
        return END if shard.closed else Position.timestamp(t0_millis)
    millis = start.millis
    if millis is None or millis > t0_millis + CLOCK_SLACK_MILLIS:
        raise Refused(f"start.timestamp: {start.timestamp!r} is missing or lies in the future")
    return Position.timestamp(min(millis, t0_millis))


def chunk_items(seed: Seed, start: StartConfig) -> list[Item]:
    """The rows `bootstrap/<plan>/<k>`: every shard with its starting position and parents."""
    t0 = _t0(seed)
    expired = before_the_oldest(seed, start) is not None
    entries = [_entry(shard, TRIM_HORIZON if expired else starting_position(start, shard, t0)) for shard in seed.listed.shards]
    # A stream without shards does not exist, but an empty plan must still have its row.
    return [
        {"id": f"{BOOTSTRAP_PREFIX}{seed.plan}/{k}", "position": start.position, "t0": t0, "shards": shards}
        for k, shards in enumerate(chunks(entries, CHUNK) if entries else [[]])
    ]


def _t0(seed: Seed) -> int:
    return seed.listed.date_millis - CLOCK_SLACK_MILLIS


def before_the_oldest(seed: Seed, start: StartConfig) -> str | None:
    """What to say of a start at a time whose records have expired already; None: they have not. Reading begins at the oldest record then.

    The time itself would look as if records had expired that the consumer was owed. A stream that is newer than its retention has kept all of them.

    Raises:
        Refused: see `StartConfig.millis`.
    """
    millis = start.millis if start.position == "AT_TIMESTAMP" else None
    kept = seed.identity.retention_millis
    if millis is None or max(millis, seed.identity.created_millis) >= _t0(seed) - kept:
        return None
    return (
        f"start.timestamp {start.timestamp} lies before the oldest record of stream {seed.identity.name}, which keeps records for "
        f"{kept / HOUR_MILLIS:g} h: reading begins at the oldest record"
    )


def _entry(shard: Shard, position: Position) -> Item:
    entry: Item = {"id": shard.id, "open": not shard.closed, "at": position.to_map()}
    return entry | ({"parents": frozenset(shard.parents)} if shard.parents else {})


def prepare(store: CheckpointStore, seed: Seed, start: StartConfig) -> bool:
    """Writes a plan and names it in the consumer row. False: another plan, or a migration, was first; this one is ignored for ever."""
    items = chunk_items(seed, start)
    for item in items:
        store.put_new(item)
    row = ConsumerRow(
        consumer_id=seed.consumer_id,
        stream_arn=seed.identity.arn,
        stream_created=seed.identity.created_millis,
        plan=seed.plan,
        chunks=len(items),
        retention=seed.identity.retention_millis,
    )
    return store.create_consumer(row)


def planned_rows(store: CheckpointStore, consumer: ConsumerRow) -> list[ShardRow]:
    """The shard rows of the plan that the consumer row names.

    Raises:
        ProtocolViolation: a chunk of it is missing.
    """
    keys = [f"{BOOTSTRAP_PREFIX}{consumer.plan}/{k}" for k in range(consumer.chunks)]
    items = store.table.batch_get(keys)
    if missing := [key for key in keys if key not in items]:
        raise ProtocolViolation(f"rows {missing} of the bootstrap plan are missing in {store.table.name}")
    rows = []
    for key in keys:
        for entry in items[key]["shards"]:
            position = Position.from_map(entry["at"])
            rows.append(ShardRow(entry["id"], position, position, parents=frozenset(entry.get("parents", ()))))
    return rows


def expired_before(store: CheckpointStore, consumer: ConsumerRow) -> int | None:
    """Up to which arrival, in epoch milliseconds, records had expired when a start at a time was planned that asks for them. None: none had.

    It is about that time, for the retention may be another one by now.
    """
    item = store.table.get(f"{BOOTSTRAP_PREFIX}{consumer.plan}/0") if consumer.plan and consumer.retention else None
    if item is None or consumer.retention is None or item["position"] != "AT_TIMESTAMP":
        return None
    at_oldest = any(Position.from_map(entry["at"]) == TRIM_HORIZON for entry in item["shards"])
    return item["t0"] - consumer.retention if at_oldest else None


def finish(store: CheckpointStore, consumer: ConsumerRow, epoch: Epoch) -> ConsumerRow:
    """Puts every shard row of the plan that is not there, then says so. Needs the lease; may be repeated by any later epoch.

    Raises:
        Fenced: the lease was lost in between.
    """
    if consumer.bootstrapped:
        return consumer
    store.table.side_by_side(partial(store.put_new, row.to_item()) for row in planned_rows(store, consumer))
    store.finish_bootstrap(epoch)
    return replace(consumer, bootstrapped=True)
