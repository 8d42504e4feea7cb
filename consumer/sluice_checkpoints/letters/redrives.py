"""Which dead letters went through `process` again (docs/dead-letters.md, "Redrive"): a log of two small files a redrive. Pure.

A redrive is *begun* by a file that names its dead letters, created only if there is none of its number. It is *ended* by another one. Numbers follow
one another: the next begins when the last has ended, so a dead letter is in one redrive at a time, and a sink sees them in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluice_checkpoints.errors import Refused

FORMAT = "sluice-redrive/1"
FOLDER, BEGUN, ENDED, REJECTED = "redrives", ".begun", ".ended", ".rejected"


@dataclass(frozen=True, slots=True)
class Redrive:
    """One batch of dead letters.

    Attributes:
        number: of the batch, from 1.
        letters: their names, in the order of the batch.
        by: the machine or person that began it, and the time; for people.
        ended: `process` returned, or a person gave it up. None: neither is known.
        rejected: dead letters that `process` rejected again.
    """

    number: int
    letters: tuple[str, ...]
    by: str
    ended: str | None = None
    rejected: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its files, below the consumer's folder and without what follows the dot."""
        return f"{FOLDER}/{self.number:06d}"

    @property
    def processed(self) -> tuple[str, ...]:
        """What is dealt with, or may be."""
        return () if self.ended == GIVEN_UP else tuple(name for name in self.letters if name not in self.rejected)

    def begun_json(self) -> str:
        """The content of the file that begins it."""
        return json.dumps({"format": FORMAT, "letters": list(self.letters), "by": self.by}, indent=1) + "\n"

    def ended_json(self) -> str:
        """The content of the file that ends it."""
        return json.dumps({"format": FORMAT, "ended": self.ended, "rejected": list(self.rejected)}, indent=1) + "\n"


PROCESSED, GIVEN_UP = "processed", "given up"


@dataclass(frozen=True, slots=True)
class RedriveLog:
    """All redrives of one consumer, in the order of their numbers."""

    redrives: tuple[Redrive, ...] = ()

    @property
    def open(self) -> Redrive | None:
        """The one that has not ended."""
        return next((redrive for redrive in self.redrives if redrive.ended is None), None)

    def of(self, letter: str) -> Redrive | None:
        """The redrive that dealt with a dead letter, or may have."""
        return next((redrive for redrive in self.redrives if letter in redrive.processed), None)

    def next(self, wanted: Sequence[str], by: str) -> Redrive:
        """The next redrive, of these dead letters.

        Raises:
            Refused: another one has not ended, or one of the dead letters was redriven.
        """
        if self.open is not None:
            raise Refused(
                f"redrive {self.open.number} was begun by {self.open.by} and has not ended. If it no longer runs, --resume gives its dead letters to "
                "`process` again, under the same number; --give-up leaves them as they were"
            )
        for name in wanted:
            if (former := self.of(name)) is not None:
                raise Refused(f"{name}: was redriven as batch {former.number}, begun by {former.by}; a dead letter is redriven once")
        return Redrive(len(self.redrives) + 1, tuple(wanted), by)


def log_of(files: Iterable[tuple[str, str]]) -> RedriveLog:
    """Reads the log of a consumer.

    Args:
        files: names below the consumer's folder, and contents.

    Raises:
        Refused: a file is none of this version's, or one is missing.
    """
    texts = dict(files)
    begun = sorted(name for name in texts if name.endswith(BEGUN))
    return RedriveLog(tuple(_read(texts, name, number) for number, name in enumerate(begun, 1)))


def _read(files: dict[str, str], name: str, number: int) -> Redrive:
    document = _document(files[name], name)
    redrive = Redrive(number, tuple(document["letters"]), document["by"])
    if name != redrive.name + BEGUN:
        raise Refused(f"{name}: there is no {redrive.name}{BEGUN} before it; files of redrives are never deleted")
    if (end := files.get(redrive.name + ENDED)) is None:
        return redrive
    document = _document(end, redrive.name + ENDED)
    return replace(redrive, ended=document["ended"], rejected=tuple(document["rejected"]))


def _document(text: str, name: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
        known = document["format"] == FORMAT
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{name}: is not a file of a redrive ({type(error).__name__}: {error})") from error
    if not known:
        raise Refused(f"{name}: format {document['format']!r} is not known to this version, which knows {FORMAT}; use a newer version")
    return dict(document)
