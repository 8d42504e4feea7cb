"""Folders that appear as a whole, whoever else works on them: the steps of two attempts in many orders, on a real disk."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from stepping import SteppedAttempt

from sluice_consumer.folders import LocalFolders, publish

FILES = ("part-0", "_SUCCESS")
STEPS = 1 + 1 + len(FILES) + 2  # look, make the folder, write each file, rename, delete

SOME = 150


class Attempt(SteppedAttempt):
    """One attempt in a thread of its own, which takes a step only when it is told to, and may be told to die instead."""

    errors = (OSError,)

    def __init__(self, home: Path, name: str) -> None:
        self._home, self._name, self._files = home, name, LocalFolders()
        super().__init__()

    def _work(self) -> None:
        publish(self, f"file://{self._home}", "7", self._write)

    def _write(self, path: str) -> None:
        folder = Path(path.removeprefix("file://"))
        self._pause()
        folder.mkdir(parents=True)
        for file in FILES:
            self._pause()
            folder.mkdir(parents=True, exist_ok=True)  # Spark makes folders for whatever it writes
            (folder / file).write_text(self._name)

    def exists(self, path: str) -> bool:
        """See `Folders`."""
        self._pause()
        return self._files.exists(path)

    def move(self, source: str, target: str) -> None:
        """See `Folders`."""
        self._pause()
        self._files.move(source, target)

    def delete(self, path: str) -> None:
        """See `Folders`."""
        self._pause()
        self._files.delete(path)


def written(home: Path) -> str | None:
    """Whose complete output the target holds; None: there is none."""
    target = home / "7"
    if not target.exists():
        return None
    assert sorted(path.name for path in target.iterdir()) == sorted(FILES)
    (name,) = {path.read_text() for path in target.iterdir()}
    return name


def schedules() -> Iterator[str]:
    """Some of the 924 orders of the steps of two attempts, the same ones each time; all of them were tried once."""
    for places in random.Random(7).sample(list(combinations(range(2 * STEPS), STEPS)), SOME):  # noqa: S311 - no secret
        yield "".join("a" if at in places else "b" for at in range(2 * STEPS))


def played(home: Path, schedule: str) -> None:
    """Two attempts in this order; after every step the target is absent, or the same complete output."""
    home.mkdir()
    attempts = {name: Attempt(home, name) for name in "ab"}
    found: str | None = None
    for name in schedule:
        attempts[name].step()
        now = written(home)
        assert found in {None, now}
        found = now
    for attempt in attempts.values():
        attempt.end()
        assert attempt.returned
    assert written(home) == (found or "a")
    assert not (home / "_staging" / "7").exists()


def test_two_attempts_in_any_order_leave_one_complete_output(tmp_path: Path) -> None:
    """An epoch that stood still may go on with its write or its rename while the next epoch replays the batch."""
    for n, schedule in enumerate(schedules()):
        played(tmp_path / str(n), schedule)


@pytest.mark.parametrize("steps", range(STEPS + 1))
def test_an_attempt_after_one_that_died_anywhere_completes_and_leaves_nothing_else(tmp_path: Path, steps: int) -> None:
    """What a dead attempt left is deleted once the target exists."""
    dead = Attempt(tmp_path, "a")
    for _ in range(steps):
        dead.step()
    dead.alive = False
    dead.step()
    heir = Attempt(tmp_path, "b")
    heir.end()
    assert heir.returned
    assert written(tmp_path) in {"a", "b"}
    assert not (tmp_path / "_staging" / "7").exists()


def test_an_output_that_cannot_be_renamed_is_an_error(tmp_path: Path) -> None:
    """Never a normal return with nothing there."""
    with pytest.raises(OSError, match="No such file"):
        publish(LocalFolders(), str(tmp_path), "7", lambda _: None)
    assert written(tmp_path) is None


@pytest.mark.parametrize("target", ["folder", "file"])
def test_a_rename_replaces_nothing(tmp_path: Path, target: str) -> None:
    """Neither a folder that holds something nor a file; and nothing is moved into it."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "part-0").write_text("new")
    found = tmp_path / "target"
    if target == "folder":
        found.mkdir()
        (found / "part-0").write_text("old")
    else:
        found.write_text("old")
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the file system
        LocalFolders().move(str(source), f"file:{found}")
    assert (found / "part-0" if target == "folder" else found).read_text() == "old"
    assert source.exists()
