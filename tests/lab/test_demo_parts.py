"""The demo's smaller parts: the KCL table, the cost of events, and the sink."""

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluice_lab.demo import in_cluster
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.scenario import delivered, kcl_table, pauses
from sluice_lab.scenario.account import RecordPosition
from sluice_lab.scenario.pauses import Commit, CommitSampler, Event
from sluice_lab.scenario.topology import StreamShard, shard_id, short

SHARDS = {shard_id(n): StreamShard(shard_id(n), n * 10, n * 10 + 9) for n in range(7)}
CHECKPOINTS = {shard_id(n): RecordPosition(10**55 + n, 4) for n in (3, 4, 5, 6)}


def test_only_checkpoints_and_hash_keys_differ_from_what_kcl_wrote() -> None:
    rows = kcl_table.dump()["rows"]
    changed = {
        name
        for before, after in zip(rows, kcl_table.rekeyed(rows, SHARDS, CHECKPOINTS), strict=True)
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }
    assert changed == {"checkpoint", "startingHashKey", "endingHashKey"}


def test_finished_shards_stay_finished() -> None:
    """SHARD_END is KCL's word, and is kept; the others get the demo's sequence numbers."""
    rows = {row["leaseKey"]["S"]: row for row in kcl_table.rekeyed(kcl_table.dump()["rows"], SHARDS, CHECKPOINTS)}
    assert [rows[shard_id(n)]["checkpoint"]["S"] for n in (0, 1, 2)] == ["SHARD_END"] * 3
    assert rows[shard_id(4)]["checkpoint"] == {"S": str(10**55 + 4)}
    assert {"w1", "Migration3.0"} < rows.keys()


def test_a_stream_of_other_shards_is_refused() -> None:
    with pytest.raises(ValueError, match="the stream has"):
        kcl_table.rekeyed(kcl_table.dump()["rows"], {shard_id(0): SHARDS[shard_id(0)]}, {})
    with pytest.raises(ValueError, match="a checkpoint is needed"):
        kcl_table.rekeyed(kcl_table.dump()["rows"], SHARDS, {})


def test_shards_have_short_names() -> None:
    assert [short(shard_id(n)) for n in (0, 4, 10, 100)] == ["0", "4", "10", "100"]


def commits(*times: float) -> list[Commit]:
    return [Commit(at, batch, 1) for batch, at in enumerate(times, 1)]


@pytest.mark.parametrize(
    ("times", "pause"),
    [
        ((1, 2, 3, 4, 5), 1),
        ((1, 2, 9), 3),  # what comes after the goal may be the next event's doing
        ((1, 2.5, 4.5, 5, 20), 2),  # what ends with the event's own batch is not its own
        ((3.5, 4.5), None),  # there was nothing to interrupt
        ((1.0,), 4),
        ((), None),
    ],
)
def test_the_longest_pause_around_an_event(times: tuple[float, ...], pause: float | None) -> None:
    assert pauses.longest_pause(commits(*times), Event("split", "children read", 2.5, 5)) == pause


def test_the_sampler_keeps_each_batch_once() -> None:
    replies: Iterator[tuple[int, int] | Exception | None] = iter([None, (1, 0), (1, 1), (1, 1), OSError(), (2, 3)])

    def read() -> tuple[int, int] | None:
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    sampler = CommitSampler(read)
    for at in range(6):
        sampler.sample(at)
    assert sampler.commits == [Commit(2, 1, 1), Commit(5, 3, 2)]
    assert (sampler.batch, sampler.generation) == (3, 2)


def write(sink: Path, name: str, numbers: list[int]) -> dict[str, object]:
    file = sink / name
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"data": json.dumps({"n": n}).encode(), "shardId": "s", "sequenceNumber": str(n), "subSequenceNumber": 0} for n in numbers]
    pq.write_table(pa.Table.from_pylist(rows), file)
    return {"path": name, "bytes": file.stat().st_size}


def commit(sink: Path, batch: str, *files: dict[str, object]) -> None:
    path = sink / "_sluice" / "b6b5" / f"{batch}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"format": "sluice-parquet/1", "files": files}))


def test_the_sink_is_read_in_order_of_delivery(tmp_path: Path) -> None:
    """Batch by batch, file by file, row by row; a file that no manifest names was never delivered."""
    commit(tmp_path, "000000000010", write(tmp_path, "b6b5/000000000010/a/part-0.parquet", [5]))
    first, second = (
        write(tmp_path, f"b6b5/000000000009/a/{name}", numbers) for name, numbers in (("part-0.parquet", [1, 2]), ("part-1.parquet", [4, 3]))
    )
    commit(tmp_path, "000000000009", first, second)
    write(tmp_path, "b6b5/000000000009/dead/part-0.parquet", [1, 2])
    write(tmp_path, "b6b5/000000000011/a/part-0.parquet", [6])
    found = delivered.read(tmp_path)
    assert [each.record.n for each in found] == [1, 2, 4, 3, 5]
    assert [each.batch for each in found] == [9, 9, 9, 9, 10]


def test_the_demo_ends_with_what_still_runs_and_how_to_remove_it() -> None:
    """And how to look at it: the kubeconfig is none that kubectl finds by itself."""
    found = in_cluster.still_there(KindCluster("sluice-1a2b", Path("/work/sluice-1a2b.kubeconfig"), Path("/work")))
    assert all(word in found for word in ("sluice-1a2b", "--kubeconfig=/work/sluice-1a2b.kubeconfig", "make demo-clean"))
