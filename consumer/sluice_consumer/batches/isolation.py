"""Where the record is that `process` cannot deal with: the search, step by step. Pure (docs/protocol.md, "Poison").

What happened goes in (a batch failed, a batch passed), the next step comes out. It may not read a clock, a table or a stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

ALONE = 2  # failures of a record alone before it is poison, other records passing between them
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0

Content = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DoubtLimits:
    """For how many seconds a record has to fail alone where no other record passes in between.

    Attributes:
        passed: other records passed since the batch failed first, and now there are none.
        nothing: there were none all the time.
        refused: those of other shards fail, too: an outage, or more poison.
    """

    passed: float = 90.0
    nothing: float = 300.0
    refused: float = 3600.0


@dataclass(frozen=True, slots=True)
class BatchFailure:
    """`process` raised.

    Attributes:
        error: what raised, so that two failures can be compared (`failures.signature`).
        transient: waiting is its cure (`failures.is_transient`).
        at: monotonic seconds.
        told: the exception with its trace, for a dead letter.
    """

    error: str
    transient: bool
    at: float
    told: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Retry:
    """The same content again, after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Shorten:
    """Each shard of the batch keeps so many of its records; what is not named keeps none. The next try comes after so many seconds."""

    keep: Content
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Exclude:
    """The only record of the batch, in this shard, is poison."""

    shard: str


Step = Retry | Shorten | Exclude


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for poison, and not for an outage: failures by one and the same error.

    Attributes:
        error: of all failures that count.
        failures: how many.
        alone: how many of them of a batch of one record. since: when the first of these was.
        passed: whether other records passed since the first failure. between: whether they did since the first one alone.
        refused: whether those of another shard failed since then, too.
    """

    error: str = ""
    failures: int = 0
    alone: int = 0
    since: float = 0.0
    passed: bool = False
    between: bool = False
    refused: bool = False

    def and_of(self, failure: BatchFailure, *, alone: bool) -> Evidence:
        """One failure more. Another error, or one of an outage, takes back what was known."""
        if failure.transient:
            return Evidence()
        known = self if failure.error == self.error else Evidence(failure.error)
        since = failure.at if alone and not known.alone else known.since
        return replace(known, failures=known.failures + 1, alone=known.alone + alone, since=since)

    def and_pass(self) -> Evidence:
        """Other records passed."""
        return replace(self, passed=self.failures > 0, between=self.alone > 0, refused=False)

    def is_poison(self, attempts: int, patience: DoubtLimits, now: float) -> bool:
        """Whether the only suspect is poison."""
        doubt = patience.refused if self.refused else patience.passed if self.passed else patience.nothing
        return self.failures >= attempts and self.alone >= ALONE and (self.between or now - self.since >= doubt)


@dataclass(frozen=True, slots=True)
class Search:
    """What is known of a batch that failed.

    Attributes:
        attempts: failures of one content before it is shortened. patience: see there.
        suspects: user records among which the poison is, by shard, counted from where its next range begins; none: nothing is suspected.
        evidence: see there.
        tries: failures one after the other, for the pauses between them.
        control: the shard whose records are to show that the sink works; None almost always.
        controls: how many shards were asked for that.
    """

    attempts: int
    patience: DoubtLimits = field(default_factory=DoubtLimits)
    suspects: Content = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    tries: int = 0
    control: str | None = None
    controls: int = 0

    @property
    def active(self) -> bool:
        """Whether something is suspected."""
        return bool(self.suspects)

    @property
    def single(self) -> bool:
        """Whether only one record is suspected."""
        return sum(self.suspects.values()) == 1

    def wanted(self) -> Content | None:
        """The most that the next batch may hold of each shard; None: all that there is."""
        if self.control is not None:
            return {self.control: 1}
        return half(self.suspects) if self.active else None

    def failed(self, content: Content, failure: BatchFailure, others: Sequence[str] = ()) -> tuple[Search, Step]:
        """A batch with this content failed.

        Args:
            content: its user records by shard; never empty, and without shards that have none.
            failure: how.
            others: shards that are not in the batch, and might be in the next.
        """
        if self.control is not None:
            doubt = replace(self.evidence, refused=True)
            return replace(self, control=None, tries=self.tries + 1, evidence=doubt), Shorten({}, _pause(self.tries + 1))
        known = replace(self, tries=self.tries + 1, evidence=self.evidence.and_of(failure, alone=sum(content.values()) == 1))
        if failure.transient or (not self.active and known.evidence.failures < self.attempts):
            return known, Retry(_pause(known.tries))
        known = replace(known, suspects=dict(content))
        return known.isolated(failure.at, others) if known.single else (replace(known, tries=0), Shorten(half(content)))

    def isolated(self, now: float, others: Sequence[str]) -> tuple[Search, Step]:
        """One record is left: poison, or a doubt that a record of another shard may end."""
        if self.evidence.is_poison(self.attempts, self.patience, now):
            return self._over(), Exclude(next(iter(self.suspects)))
        if self.evidence.between or not others:
            return self, Retry(_pause(self.tries))
        asked = sorted(others)[self.controls % len(others)]
        return replace(self, control=asked, controls=self.controls + 1), Shorten({})

    def passed(self, content: Content) -> Search:
        """`process` returned from a batch with this content, and it was committed."""
        proof = self.evidence.and_pass() if content else self.evidence
        if self.control is not None:
            return replace(self, control=None, evidence=proof)
        left = {shard: count - content.get(shard, 0) for shard, count in self.suspects.items()}
        left = {shard: count for shard, count in left.items() if count > 0}
        another = replace(proof, alone=0, between=False, refused=False)  # whichever is found alone next, it is not the one that was
        return replace(self, suspects=left, tries=0, evidence=another) if left and content else self._over()

    def _over(self) -> Search:
        return Search(self.attempts, self.patience)


def half(content: Content) -> Content:
    """The first half: of the shards, while there are several; else of the records."""
    shards = sorted(content)
    if len(shards) > 1:
        return {shard: content[shard] for shard in shards[: len(shards) // 2]}
    (shard,) = shards
    return {shard: max(1, content[shard] // 2)}


def _pause(failures: int) -> float:
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1)))
