"""For readers of the `parquet` sink: the files that count. Needs pyarrow, no Spark."""

from __future__ import annotations

import re

from pyarrow import fs

from sluice_consumer.sinks import manifest


def committed_files(path: str, consumer: str | None = None, filesystem: fs.FileSystem | None = None) -> list[str]:
    """The data files below a sink's path that a manifest names, oldest batch first within a consumer.

    Args:
        path: `args.path` of the sink; `s3a://` is read as `s3://`.
        consumer: only of this consumer (`info.consumer`).
        filesystem: where the path is, if its scheme does not say; then paths are those of this file system.

    Returns:
        Paths for the file system, as `pyarrow.dataset.dataset(paths, filesystem=…)` takes them.

    Raises:
        ValueError: a manifest is of a format that this version does not know.
    """
    if filesystem is None:
        filesystem, path = fs.FileSystem.from_uri(re.sub(r"^s3a:", "s3:", path))
    root = path.rstrip("/")
    folder = f"{root}/_sluice/{consumer}" if consumer else f"{root}/_sluice"
    found = filesystem.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    manifests = sorted(info.path for info in found if info.is_file and info.path.endswith(".json"))
    return [f"{root}/{file.path}" for name in manifests for file in _read(filesystem, name)]


def _read(filesystem: fs.FileSystem, name: str) -> tuple[manifest.DataFile, ...]:
    with filesystem.open_input_stream(name) as stream:
        return manifest.from_json(stream.read())
