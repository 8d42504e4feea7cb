"""Whether a Delta table still holds a commit, by its history (docs/sinks.md, "Delta"). Pure.

Delta's log keeps which batches it was given, also those that `RESTORE` or `CREATE OR REPLACE TABLE` took out of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

RESTORE = "RESTORE"
REPLACES = frozenset({"REPLACE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE AS SELECT", "CLONE"})
"""Delta's names, whole: REPLACE COLUMNS takes no rows out."""


@dataclass(frozen=True)
class TableVersion:
    """One version of a table.

    Attributes:
        operation: as `DESCRIBE HISTORY` has it; None: its writer did not say, which Delta's protocol allows.
        restored: the version that a RESTORE went back to; None: it named a time, or is no RESTORE.
        consumer: whose batch it added, if it added one.
        batch: that batch, else None.
    """

    version: int
    operation: str | None
    restored: int | None = None
    consumer: str | None = None
    batch: int | None = None

    @property
    def undoes(self) -> bool:
        """Whether it may take out of the table what an earlier version had."""
        return self.operation == RESTORE or self.operation in REPLACES


History = Mapping[int, TableVersion]


def adding(history: History, consumer: str, batch: int) -> int | None:
    """The newest version that added a batch; None: the history does not show it."""
    versions = (version for version, each in history.items() if (each.consumer, each.batch) == (consumer, batch))
    return max(versions, default=None)


def undoing(history: History, added: int | None, start: int | None = None) -> TableVersion | None:
    """The commit that took a version out of the table; None: the table holds it.

    Args:
        history: down to that version, or all that is known.
        added: that version; None: it is older than the history, so a RESTORE to a version of the history keeps what that had.
        start: as of which version; None: the newest.
    """
    at = max(history, default=-1) if start is None else start
    lowest = added if added is not None else min(history, default=0) - 1
    while at > lowest and at in history:
        commit = history[at]
        if commit.undoes and (commit.restored is None or commit.restored < lowest):
            return commit
        at = commit.restored if commit.restored is not None else at - 1
    return None


def last_holding(history: History, added: int) -> int:
    """The newest version that holds what one version added."""
    return max(version for version in range(added, max(history) + 1) if undoing(history, added, version) is None)
