"""Which files of a batch count: a manifest, written last, on the condition that there is none (docs/sinks.md, "Parquet"). Pure."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Protocol

from sluice_checkpoints.errors import Refused, SluiceError

log = logging.getLogger(__name__)
FORMAT = "sluice-parquet/1"


@dataclass(frozen=True)
class DataFile:
    """A file that counts: its path below the sink's, and its size."""

    path: str
    bytes: int


class Store(Protocol):
    """A file system or object store. Paths are complete; no rename is needed."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        ...

    def files(self, folder: str) -> Iterable[tuple[str, int]]:
        """Path below the folder, and size, of every file in it, deep; none if there is no folder."""
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Makes a file, whole, if there is none; False if there is one. Atomic.

        Raises:
            OSError: the file system failed; the file may be there. Refused: the server does not know the condition.
        """
        ...

    def delete(self, folder: str) -> None:
        """Deletes a folder with all in it. What cannot be deleted stays."""
        ...


@dataclass(frozen=True)
class BatchFiles:
    """Where a batch is below a sink's path."""

    root: str
    consumer: str
    batch: int

    @property
    def manifest(self) -> str:
        """The file that says which files count."""
        return f"{self.root}/_sluice/{self.consumer}/{self.batch:012d}.json"

    @property
    def folder(self) -> str:
        """The folder of all attempts."""
        return f"{self.root}/{self.consumer}/{self.batch:012d}"


def write_once(store: Store, place: BatchFiles, write: Callable[[str], None]) -> bool:
    """Writes a batch, unless it has a manifest; False if another attempt's files count.

    Every attempt has a folder of its own. Only when this batch has a manifest are the others deleted: before that, an attempt may be alive that still
    writes its manifest.

    Raises:
        SluiceError: an attempt left no file. Else what `write` or the store raises: nothing counts then.
    """
    won = not store.exists(place.manifest) and _attempt(store, place, write)
    if not won:
        log.info("%s exists: the files that it names count", place.manifest)
    return won


def _attempt(store: Store, place: BatchFiles, write: Callable[[str], None]) -> bool:
    attempt = uuid.uuid4().hex
    write(f"{place.folder}/{attempt}")
    written = list(store.files(f"{place.folder}/{attempt}"))
    if not written and store.exists(place.manifest):
        return False  # another attempt was faster, and has deleted what this one wrote
    if not written:
        raise SluiceError(f"{place.folder}/{attempt}: no file was written")
    names = [(path, size) for path, size in written if _counts(path)]  # none: no rows, and a partitioned write leaves its `_SUCCESS` only
    below = place.folder.removeprefix(f"{place.root}/")
    files = [DataFile(f"{below}/{attempt}/{path}", size) for path, size in sorted(names)]
    return store.create(place.manifest, to_json(place, files))


def clean(store: Store, place: BatchFiles, counted: Iterable[DataFile]) -> None:
    """Deletes what other attempts at a batch left that has a manifest.

    Raises:
        Refused: a file that counts is gone. Nothing was deleted.
    """
    below, names = place.folder.removeprefix(f"{place.root}/"), [file.path for file in counted]
    there = [path for path, _ in store.files(place.folder)]
    if missing := sorted(set(names) - {f"{below}/{path}" for path in there}):
        raise Refused(
            f"pipeline.args.path: {place.manifest} names {place.root}/{missing[0]}, which is not there "
            f"({len(missing)} of {len(names)} files are missing). "
            "Restore the files, or delete this manifest while no driver runs, and the batch is written again"
        )
    kept = {name.removeprefix(f"{below}/").split("/")[0] for name in names}
    for attempt in {path.split("/")[0] for path in there} - kept:
        store.delete(f"{place.folder}/{attempt}")


def to_json(place: BatchFiles, files: Iterable[DataFile]) -> bytes:
    """A manifest's content."""
    document = {"format": FORMAT, "consumer": place.consumer, "batch": place.batch, "files": [asdict(file) for file in files]}
    return json.dumps(document, indent=1).encode()


def from_json(content: bytes) -> tuple[DataFile, ...]:
    """The files that a manifest names.

    Raises:
        ValueError: it is not a manifest of a known format.
    """
    document = json.loads(content)
    if document.get("format") != FORMAT:
        raise ValueError(f"{document.get('format')!r} is not {FORMAT}")
    return tuple(DataFile(**file) for file in document["files"])


def _counts(path: str) -> bool:
    return not path.rsplit("/", 1)[-1].startswith(("_", "."))
