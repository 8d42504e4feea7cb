"""Files that count: attempts at a batch, step by step, in many orders, over a store in memory."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import pytest
from stepping import SteppedAttempt

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_consumer.sinks.files import manifest
from sluice_consumer.sinks.files.manifest import BatchFiles, DataFile, clean, from_json, write_once

PLACE = BatchFiles("s3a://lake/orders", "c", 7)
FILES = ("part-0.parquet", "arrival_day=2026-11-24/part-1.parquet", "_SUCCESS")
SOME = 300


class MemoryStore:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def exists(self, path: str) -> bool:
        return path in self.objects

    def files(self, folder: str) -> Iterable[tuple[str, int]]:
        return [(name.removeprefix(f"{folder}/"), len(content)) for name, content in self.objects.items() if name.startswith(f"{folder}/")]

    def create(self, path: str, content: bytes) -> bool:
        if path in self.objects:
            return False
        self.objects[path] = content
        return True

    def delete(self, folder: str) -> None:
        self.objects = {name: content for name, content in self.objects.items() if not name.startswith(f"{folder}/")}


class Attempt(SteppedAttempt):
    def __init__(self, store: MemoryStore, *, marker_first: bool = False) -> None:
        self._store, self._marker_first = store, marker_first
        super().__init__()

    def _work(self) -> None:
        if self._marker_first:
            self.create(PLACE.manifest, manifest.to_json(PLACE, [DataFile(f"c/{PLACE.batch:012d}/a/{name}", 4) for name in FILES[:2]]))
            self._write(f"{PLACE.folder}/a")
        else:
            write_once(self, PLACE, self._write)
            clean(self, PLACE, from_json(self._store.objects[PLACE.manifest]))

    def _write(self, folder: str) -> None:
        for name in FILES:
            self._pause()
            self._store.objects[f"{folder}/{name}"] = b"rows"

    def exists(self, path: str) -> bool:
        self._pause()
        return self._store.exists(path)

    def files(self, folder: str) -> Iterable[tuple[str, int]]:
        self._pause()
        return self._store.files(folder)

    def create(self, path: str, content: bytes) -> bool:
        self._pause()
        return self._store.create(path, content)

    def delete(self, folder: str) -> None:
        self._pause()
        self._store.delete(folder)


def counted(store: MemoryStore) -> list[str]:
    named = from_json(store.objects[PLACE.manifest])
    found = [f"{PLACE.root}/{file.path}" for file in named]
    assert all(name in store.objects for name in found)
    assert all(len(store.objects[name]) == file.bytes for name, file in zip(found, named, strict=True))
    assert all(a.split("/")[:6] == b.split("/")[:6] for a, b in pairwise(found))
    return [name.split("/", 7)[7] for name in found]


def whole(store: MemoryStore) -> bool:
    return counted(store) == sorted(name for name in FILES if not name.startswith("_"))


@pytest.mark.parametrize("step", range(9))
def test_what_a_dead_attempt_left_never_counts(step: int) -> None:
    store = MemoryStore()
    first = Attempt(store)
    for _ in range(step):
        first.step()
    first.die()
    heir = Attempt(store)
    heir.end()
    assert heir.returned
    assert whole(store)
    assert len(store.objects) == len(FILES) + 1


def test_of_attempts_side_by_side_one_counts() -> None:
    for seed in range(SOME):
        dice, store = random.Random(seed), MemoryStore()  # noqa: S311 - a schedule that can be repeated
        attempts = [Attempt(store) for _ in range(3)]
        while any(not attempt.over for attempt in attempts):
            one = dice.choice(attempts)
            if dice.random() < 0.03 and one is not attempts[0]:
                one.die()
            one.step()
        assert whole(store), seed


def test_a_marker_that_is_written_first_is_noticed() -> None:
    store = MemoryStore()
    first = Attempt(store, marker_first=True)
    first.step()
    first.step()
    first.die()
    with pytest.raises(AssertionError):
        whole(store)


def test_an_attempt_without_rows_counts_though_it_has_no_file() -> None:
    """Spark's partitioned write of no rows leaves its `_SUCCESS` alone."""
    store = MemoryStore()
    assert write_once(store, PLACE, lambda folder: store.objects.update({f"{folder}/_SUCCESS": b""}))
    assert from_json(store.objects[PLACE.manifest]) == ()
    assert not write_once(store, PLACE, lambda folder: store.objects.update({f"{folder}/part-0.parquet": b"rows"}))


def test_an_attempt_that_left_no_file_counts_as_failed() -> None:
    """Spark writes a file even for no rows: none means that something took it."""
    store = MemoryStore()
    with pytest.raises(SluiceError, match="no file was written"):
        write_once(store, PLACE, lambda _folder: None)
    assert store.objects == {}


def test_a_manifest_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="sluice-parquet/2"):
        from_json(b'{"format": "sluice-parquet/2", "files": []}')


def test_files_that_a_manifest_names_and_that_are_gone_are_no_stored_batch() -> None:
    """The owner restored an old manifest, or deleted files: refused, and nothing is deleted. Without the manifest the batch is written again."""
    store = MemoryStore()
    Attempt(store).end()
    counted = from_json(store.objects[PLACE.manifest])
    lost = f"{PLACE.root}/{counted[0].path}"
    kept = store.objects.pop(lost)
    before = dict(store.objects)
    with pytest.raises(Refused, match=rf"names {lost}, which is not there \(1 of 2 files are missing\)\. Restore the files, or delete this manifest"):
        clean(store, PLACE, counted)
    assert store.objects == before
    store.objects[lost] = kept
    clean(store, PLACE, counted)
    del store.objects[PLACE.manifest], store.objects[lost]
    Attempt(store).end()
    assert all(f"{PLACE.root}/{file.path}" in store.objects for file in from_json(store.objects[PLACE.manifest]))
