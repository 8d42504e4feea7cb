"""What differs from one world to another: the user's code, Spark's patience, limits, the service's behaviour, clocks."""

from __future__ import annotations

from dataclasses import dataclass

# What `process` does with its batch (docs/protocol.md, "What returning means"). It may do another thing when the batch is replayed.
READ, TWICE, PART, NOTHING, SWALLOW = "read", "twice", "part", "nothing", "swallow"
EARLY = "early"  # its query ends while a job of it still runs, as adaptive execution lets it when a side of a join is empty
WAIVE = "waive"  # it returns from a replay without reading: what the batch contains is dealt with by its word
RAISE, HANG = "raise", "hang"
LATE = "late"  # it raises once when its sink has the batch, by an error of its own
PROCESSES = (READ, TWICE, PART, NOTHING, SWALLOW, EARLY, WAIVE, RAISE, HANG, LATE)


@dataclass(frozen=True)
class Habits:
    """What differs from one world to another.

    Attributes:
        processes: what `process` does, by the numbers of batch and epoch, over and over.
        looks_first: it asks its sink before it reads; else the sink ignores what it has already.
        attempts: how often a task is tried.
        limit: records of a shard in a batch; interval: seconds from a batch of all shards to the next.
        shards_per_task: how many; bind_all_first: they are all bound before the first one is emitted.
        end_with_records: the service ends a shard with its last records, or with an empty reply after them.
        folds: so many rows of shards that are over suffice for the driver to fold them; 0: it never does.
        page: rows in a page of a scan; 0: all come at once.
        picks: which of the writes that are made side by side goes next, over and over (0: the first that is left).
        probes: of so many idle shards before a batch, and a second; refreshes: so many of them take part in a batch to be refreshed.
        sparse: so many empty replies come before what a new iterator leads to.
        rates: local seconds a second of true time, dealt to epochs and executors in turn (docs/protocol.md bears 1 %).
        isolates: the driver isolates records on which `process` raises, after two failures (docs/protocol.md, "Poison").
        overdue: on a record on which it raised otherwise, and in an outage, it hangs, until its driver ends.
        hasty: no doubt takes a time: how often a record fails is all that counts.
        straggles: beside a failure of `process` another job of it reads the batch, and hangs until it is cancelled; its tasks take a while to end.
        own_session: a run in somebody else's session, which looks after its lease when `process` has raised (`lease_release`).
        only_close: the check of a batch's jobs is blind for failed jobs of shards that are not bound; only the close protects them.
    """

    processes: tuple[str, ...] = (READ,)
    looks_first: bool = True
    attempts: int = 3
    limit: int = 2
    interval: float = 0.0
    shards_per_task: int = 1
    bind_all_first: bool = False
    end_with_records: bool = False
    rates: tuple[float, ...] = (1.0,)
    only_close: bool = False
    isolates: bool = False
    overdue: bool = False
    hasty: bool = False
    straggles: bool = False
    own_session: bool = False
    sparse: int = 0
    probes: int = 500
    refreshes: int = 128
    folds: int = 0
    page: int = 0
    picks: tuple[int, ...] = (0,)
