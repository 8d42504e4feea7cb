import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sluice_lab.scenario import delivered


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
