"""Keys of `ShardRow.readers`: `"<generation>.<task>"`, where a task of Spark is `"<stage id>.<partition id>"`. Written and taken apart here only."""

from __future__ import annotations


def reader_key(generation: int, task: str) -> str:
    """The key of a task, or of what reads instead of it, in the epoch of this generation."""
    return f"{generation}.{task}"


def is_of(key: str, generation: int) -> bool:
    """Whether the reader is of the epoch of this generation."""
    return key.startswith(reader_key(generation, ""))


def generation_of(key: str) -> int:
    """The generation of a reader's epoch.

    Raises:
        ValueError: the key begins with no number.
    """
    return int(key.partition(".")[0])
