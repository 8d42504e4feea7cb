"""What became of each job, and whose it is, for longer than Spark remembers.

Spark keeps 10,000 jobs (`conf`), which forty consumers begin in 83 s. A batch that lasts longer would be judged by jobs that nobody knows any more,
and never be committed. So one thread of a group asks for each job while Spark knows it, for all consumers.
"""

from __future__ import annotations

import threading

from sluice_consumer.spark.jobs import JobStatus
from sluice_consumer.spark.status import FAILED, FORGOTTEN, SUCCEEDED

KEPT = 1_000_000  # jobs: more than two hours of forty consumers, in 9 MB
LOOKS = 10  # at a job that Spark has counted and does not know: its store has the job a moment later


class JobMemory:
    """Of one Spark. `look` once a second; the rest may be asked from any thread.

    It has to look before Spark forgets: a Spark that begins 10,000 jobs between two looks is judged as without a memory.
    """

    def __init__(self, status: JobStatus, kept: int = KEPT) -> None:
        """Knows nothing of the jobs until now."""
        self._status, self._kept = status, kept
        self._first = self._next = status.begun()
        self._tags = list[frozenset[str] | None]()  # from `_first` on
        self._succeeded = bytearray()
        self._open = dict[int, int]()  # jobs that may become something else, and how often they were not known
        self._same = dict[frozenset[str], frozenset[str]]()
        self._lock = threading.Lock()

    def observe(self) -> None:
        """Notes what is new."""
        begun = self._status.begun()
        with self._lock:
            self._tags += [None] * (begun - self._next)
            self._succeeded += bytes(begun - self._next)
        self._open |= dict.fromkeys(range(self._next, begun), 0)
        self._next = begun
        for job in list(self._open):
            self._note(job)
        self._forget()

    def _note(self, job: int) -> None:
        tags = self.tags(job)
        if tags is None:
            tags = self._status.tags(job)
        state = FORGOTTEN if tags is None else self._status.status(job)
        if tags is not None:
            with self._lock:
                self._tags[job - self._first] = self._same.setdefault(tags, tags)
                self._succeeded[job - self._first] = state == SUCCEEDED
        self._open[job] += state == FORGOTTEN
        if state in {SUCCEEDED, FAILED} or self._open[job] >= LOOKS:
            del self._open[job]

    def _forget(self) -> None:
        """The oldest ones, once there are twice too many. A tag is an epoch's: those that no job has are forgotten, too."""
        extra = len(self._tags) - self._kept
        if extra < self._kept:
            return
        with self._lock:
            del self._tags[:extra]
            del self._succeeded[:extra]
            self._first += extra
        self._open = {job: looks for job, looks in self._open.items() if job >= self._first}
        self._same = {tags: tags for tags in self._tags if tags is not None}

    def tags(self, job: int) -> frozenset[str] | None:
        """With which tags a job was begun; None: it is not known."""
        with self._lock:
            return self._tags[job - self._first] if self._first <= job < self._first + len(self._tags) else None

    def succeeded(self, job: int) -> bool:
        """Whether it is known that a job ended well."""
        with self._lock:
            return self._first <= job < self._first + len(self._succeeded) and bool(self._succeeded[job - self._first])
