"""Folders of dead letters, on a disk or on S3. They are only read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from sluice_checkpoints.aws.boto_clients import attempted, kept_client
from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters import pending
from sluice_checkpoints.letters.letter import DeadLetter, order
from sluice_checkpoints.letters.redrives import BEGUN, ENDED, RedriveLog, log_of

LETTER = ".json"
T = TypeVar("T")


class LetterFolder(Protocol):
    """Where dead letters are."""

    def names(self, *suffixes: str) -> Iterator[str]:
        """Paths of all files with one of these suffixes, three levels below the folder, in order.

        Raises:
            Refused: there is no such folder or bucket, or it may not be read. ServiceUnavailable: no answer, or there are no credentials now.
        """
        ...

    def read(self, name: str) -> str:
        """One of them.

        Raises:
            Refused: it is not there, or may not be read. ServiceUnavailable: as above.
        """
        ...


class DiskFolder:
    """A folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, *suffixes: str) -> Iterator[str]:
        if not self._root.is_dir():
            raise Refused(f"--path {self._root}: there is no such folder; check the path")
        return (file.relative_to(self._root).as_posix() for file in sorted(self._root.glob("*/*/*")) if file.name.endswith(suffixes))

    def read(self, name: str) -> str:
        try:
            return (self._root / name).read_text(encoding="utf-8")
        except OSError as error:
            raise Refused(f"{name}: {error.strerror}") from error


class S3Folder:
    """A prefix of a bucket."""

    def __init__(self, client: Any, bucket: str, prefix: str, patience: Patience | None = None) -> None:
        self._client, self._bucket, self._prefix = client, bucket, f"{prefix}/" if prefix else ""
        self._patience = patience or Patience()

    def names(self, *suffixes: str) -> Iterator[str]:
        return iter(self._call("ListObjectsV2", f"--path s3://{self._bucket}/{self._prefix}", lambda: self._listed(suffixes)))

    def _listed(self, suffixes: tuple[str, ...]) -> list[str]:
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
        keys = (str(entry["Key"]) for page in pages for entry in page.get("Contents", ()))
        return [key.removeprefix(self._prefix) for key in keys if key.endswith(suffixes)]

    def read(self, name: str) -> str:
        return self._call(
            "GetObject", name, lambda: str(self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)["Body"].read().decode())
        )

    def _call(self, operation: str, what: str, call: Callable[[], T]) -> T:
        def refused(error: Exception) -> Refused:
            return Refused(f"{what}: {error}")

        return self._patience.call(f"{operation} of bucket {self._bucket}", lambda: attempted(call, refused, refused))


def folder(path: str, region: str | None, endpoint: str | None) -> LetterFolder:
    """The folder of a path as `onError.deadLetter.path` has it: s3a://, s3://, file:// or of this machine.

    Raises:
        Refused: another scheme.
    """
    parts = urlsplit(path)
    if parts.scheme in {"s3", "s3a"}:
        return S3Folder(kept_client("s3", region, endpoint), parts.netloc, parts.path.strip("/"))
    if parts.scheme in {"", "file"}:
        return DiskFolder(Path(parts.path))
    raise Refused(f"--path {path}: dead letters are read from s3a:// and file://, not from {parts.scheme}://")


def letters(where: LetterFolder, consumer: str | None = None) -> Iterator[tuple[str, DeadLetter]]:
    """All final dead letters with their names, of one consumer or of all, in the order of each shard."""
    for name in sorted(where.names(LETTER), key=order):
        if consumer is None or name.startswith(f"{consumer}/"):
            yield name, DeadLetter.from_json(where.read(name), name)


def pending_letters(where: LetterFolder, consumer: str | None = None) -> dict[str, DeadLetter]:
    """Dead letters of batches that are not known to be committed, by the names that they will have.

    Raises:
        Refused: a file of them is none.
    """
    files = (name for name in where.names(pending.SUFFIX) if consumer is None or name.startswith(f"{consumer}/"))
    letters = (letter for file in files for letter in pending.from_text(where.read(file), file))
    return {letter.path: letter for letter in sorted(letters, key=lambda letter: order(letter.path))}


def redrives(where: LetterFolder) -> dict[str, RedriveLog]:
    """What was redriven, by consumer.

    Raises:
        Refused: see `log_of`.
    """
    files: dict[str, list[tuple[str, str]]] = {}
    for name in where.names(BEGUN, ENDED):
        consumer, _, rest = name.partition("/")
        files.setdefault(consumer, []).append((rest, where.read(name)))
    return {consumer: log_of(texts) for consumer, texts in files.items()}
