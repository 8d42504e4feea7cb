"""Dead letters of a batch that is not committed: their form, and the names of their files (docs/dead-letters.md, "States of a dead letter"). Pure.

What one issue of a batch leaves out at once is one text, one line per dead letter, in ASCII. Its suffix is not that of a dead letter, so programs
that read dead letters skip it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters.letter import DeadLetter

FOLDER, SUFFIX = "pending", ".pending"
REJECTED, EXCLUDED = "rejected", "excluded"
NAME = re.compile(r"(?P<batch>\d+)-(?P<generation>\d+)-(?P<part>\d+)-(?P<kind>rejected|excluded)")


@dataclass(frozen=True, slots=True, order=True)
class PendingName:
    """What a text of pending dead letters is called.

    Attributes:
        batch: of which they are.
        generation, part: which epoch left them; it counts its own.
        kind: whether `process` rejected the records, or they are to be excluded.
    """

    batch: int
    generation: int
    part: int
    kind: str

    def __str__(self) -> str:
        return f"{self.batch:012d}-{self.generation}-{self.part}-{self.kind}"

    @staticmethod
    def parse(name: str) -> PendingName:
        """Reads one; folder and suffix may be there.

        Raises:
            Refused: it is none.
        """
        match = NAME.fullmatch(name.rpartition("/")[2].removesuffix(SUFFIX))
        if match is None:
            raise Refused(f"{name}: is not the name of pending dead letters; Sluice writes nothing else there: move the file elsewhere")
        return PendingName(int(match["batch"]), int(match["generation"]), int(match["part"]), match["kind"])


def to_text(letters: Sequence[DeadLetter]) -> str:
    """What is stored."""
    return "".join(f"{json.dumps(letter.document(), separators=(',', ':'))}\n" for letter in letters)


def from_text(text: str, name: str) -> tuple[DeadLetter, ...]:
    """Reads what is stored; `name` is for errors.

    Raises:
        Refused: a line is not a dead letter.
    """
    return tuple(DeadLetter.from_json(line, name) for line in text.splitlines())
