"""Where the record is that `process` cannot deal with: the search, step by step. Pure (docs/protocol.md, "Poison").

What happened goes in (a batch failed, a batch passed), the next step comes out. It may not read a clock, a table or a stream.

What outlives a driver, the row `isolation` keeps. Downtime does not count: a time is kept there as the seconds since then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

DATA, UNKNOWN, HANG, CRASH = "data", "unknown", "hang", "crash"  # kinds of failures
ALONE = {DATA: 2, UNKNOWN: 2, HANG: 3, CRASH: 5}  # failures of a record alone before it is poison
AGAIN = 2  # failures of a content by one error before it is shortened: a sink that has it says so when it is asked again
WITNESSES = 2  # other shards whose records pass in that time, if there are so many
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
DAY = 86_400.0

Content = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class DoubtLimits:
    """For how many seconds a record has to fail alone, from the first of these failures to the last. The longest that applies counts.

    Attributes:
        data: always.
        unknown: the error does not say that a value is wrong, or a Python worker died: a part of the sink may be down.
        nothing: there are fewer witnesses than there should be.
        refused: the last record of another shard failed, too: an outage, or more poison. Or there is no witness, and a Python worker dies.
    """

    data: float = 60.0
    unknown: float = 900.0
    nothing: float = 300.0
    refused: float = 3600.0


@dataclass(frozen=True, slots=True)
class BatchFailure:
    """`process` raised.

    Attributes:
        error: what raised, so that two failures can be compared (`failures.signature`).
        transient: waiting is its cure (`failures.is_transient`).
        at: monotonic seconds.
        trace: the exception with its trace, for a dead letter.
        kind: what it says of the record (`failures.kind`).
    """

    error: str
    transient: bool
    at: float
    trace: str = field(default="", compare=False)
    kind: str = UNKNOWN


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
    """What speaks for poison, and not for an outage: failures by one and the same error, or of one record alone by errors of data.

    Attributes:
        error: of the last failure. kind: of all that count.
        failures: how many.
        alone: how many of them of a batch of one record. since: when the first of these was.
        witnesses: shards of which a record passed since then.
        refused: the last record of another shard that was tried since then failed.
    """

    error: str = ""
    failures: int = 0
    alone: int = 0
    since: float = 0.0
    witnesses: frozenset[str] = frozenset()
    refused: bool = False
    kind: str = UNKNOWN

    def and_of(self, failure: BatchFailure, *, alone: bool) -> Evidence:
        """One failure more. Another error, or one of an outage, takes back what was known."""
        if failure.transient:
            return Evidence()
        known = self if self._supported_by(failure, alone=alone) else Evidence(kind=failure.kind)
        since = failure.at if alone and not known.alone else known.since
        return replace(known, error=failure.error, failures=known.failures + 1, alone=known.alone + alone, since=since)

    def _supported_by(self, failure: BatchFailure, *, alone: bool) -> bool:
        one_record = alone and self.alone > 0
        return failure.kind == self.kind and (failure.error == self.error or (one_record and self.kind == DATA))

    def and_pass(self, content: Content) -> Evidence:
        """Other records passed."""
        return replace(self, witnesses=self.witnesses | content.keys() if self.alone else frozenset(), refused=False)

    def is_poison(self, attempts: int, now: float, seconds: float) -> bool:
        """Whether the only suspect is poison: it failed often enough, and for so long."""
        return self.failures >= attempts and self.alone >= ALONE[self.kind] and now - self.since >= seconds

    def doubt(self, limits: DoubtLimits, others: int) -> float:
        """For how many seconds it has to fail alone. `others`: shards that might be asked for a witness."""
        longest = limits.unknown if self.kind in {UNKNOWN, CRASH} else limits.data
        if len(self.witnesses) < max(1, min(WITNESSES, others)):
            longest = max(longest, limits.nothing)
        return max(longest, limits.refused) if self.refused or (self.kind == CRASH and not self.witnesses) else longest


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
        counts: how often the present content failed, by error. known: errors by which a content failed often enough to be shortened.
        busy: shards that had records in this search: the first to be asked.
        failing: since when no suspect passed; None: nothing fails.
    """

    attempts: int
    patience: DoubtLimits = field(default_factory=DoubtLimits)
    suspects: Content = field(default_factory=dict)
    evidence: Evidence = field(default_factory=Evidence)
    tries: int = 0
    control: str | None = None
    controls: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    busy: frozenset[str] = frozenset()
    failing: float | None = None

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
        counted = self._counted(content, failure)
        if failure.transient or not counted.failed_enough(failure.error):
            return counted, Retry(_pause(max(1, counted.tries)))
        if counted.control is not None:
            doubt = replace(self.evidence, refused=True)
            return replace(counted, control=None, counts={}, evidence=doubt), Shorten({})
        known = replace(counted, suspects=dict(content), counts={}, known=counted.known | {failure.error})
        return known.isolated(failure.at, others) if known.single else (replace(known, tries=0), Shorten(half(content)))

    def _counted(self, content: Content, failure: BatchFailure) -> Search:
        """One failure more. That of a record of another shard says nothing of the suspects."""
        counts = {} if failure.transient else {**self.counts, failure.error: self.counts.get(failure.error, 0) + 1}
        known = replace(self, busy=self.busy | content.keys(), failing=failure.at if self.failing is None else self.failing, counts=counts)
        if self.control is not None:
            return known
        return replace(known, tries=self.tries + 1, evidence=self.evidence.and_of(failure, alone=sum(content.values()) == 1))

    def failed_enough(self, error: str) -> bool:
        """Whether the content failed so often by this error that its sink does not have it."""
        enough = AGAIN if self.active else max(AGAIN, self.attempts)
        return self.counts[error] >= enough or (error in self.known and self.control is None)

    def isolated(self, now: float, others: Sequence[str]) -> tuple[Search, Step]:
        """One record is left: poison, or a doubt. Before it is tried again, a record of another shard is."""
        if self.evidence.is_poison(self.attempts, now, self.evidence.doubt(self.patience, len(others))):
            return self._over(), Exclude(next(iter(self.suspects)))
        if not others:
            return self, Retry(_pause(self.tries))
        first = sorted(self.busy.intersection(others)) or sorted(others)
        asked = first[self.controls % len(first)]
        return replace(self, control=asked, controls=self.controls + 1), Shorten({}, _pause(self.tries))

    def passed(self, content: Content, *, coming: bool = False) -> Search:
        """`process` returned from a batch with this content, and it was committed.

        Args:
            content: see `failed`; here it may be empty.
            coming: a shard of the batch brought nothing yet, and is not at its tip.
        """
        proof = self.evidence.and_pass(content) if content else self.evidence
        if self.control is not None:
            busy = self.busy if content else self.busy - {self.control}
            return replace(self, control=None, counts={}, evidence=proof, busy=busy)
        if coming and not content:
            return self
        if proof.error in self.counts:  # it fails by this error, and passes
            proof = Evidence()
        left = {shard: count - content.get(shard, 0) for shard, count in self.suspects.items()}
        left = {shard: count for shard, count in left.items() if count > 0}
        another = replace(proof, alone=0, witnesses=frozenset())  # whichever is found alone next, it is not the one that was
        return replace(self, suspects=left, tries=0, evidence=another, failing=None, counts={}) if left and content else self._over()

    def waited(self, now: float) -> float:
        """For how many seconds no suspect passed."""
        return 0.0 if self.failing is None else now - self.failing

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
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 16)))  # a day of failures is 1,440 of them


def stored(search: Search, now: float) -> dict[str, Any]:
    """What outlives the driver. What is suspected is only kept while a record of another shard is tried; else it is what the batch holds.

    Args:
        search: as it is.
        now: monotonic seconds, on the clock of its failures.
    """
    evidence = search.evidence
    known: dict[str, Any] = {
        "error": evidence.error,
        "failures": evidence.failures,
        "alone": evidence.alone,
        "seconds": int(now - evidence.since) if evidence.alone else 0,
        "refused": evidence.refused,
    }
    control: dict[str, Any] = {}
    if search.control is not None:
        control = {"control": search.control, "suspects": dict(search.suspects)}
    return {
        "evidence": known,
        "kind": evidence.kind,
        "witnesses": sorted(evidence.witnesses),
        "controls": search.controls,
        "tally": dict(search.counts),
        "known": sorted(search.known),
        "lasts": int(search.waited(now)),
        **control,
    }


def restored(beginning: Search, known: Mapping[str, Any], now: float) -> Search:
    """The search of the driver before.

    Args:
        beginning: a search with nothing known, for its limits.
        known: what `stored` made.
        now: monotonic seconds of this driver.
    """
    trace = known["evidence"]
    evidence = Evidence(
        error=trace["error"],
        failures=trace["failures"],
        alone=trace["alone"],
        since=now - trace["seconds"],
        witnesses=frozenset(known["witnesses"]),
        refused=trace["refused"],
        kind=known["kind"],
    )
    return replace(
        beginning,
        evidence=evidence,
        controls=known["controls"],
        control=known.get("control"),
        counts=dict(known["tally"]),
        known=frozenset(known["known"]),
        suspects=dict(known.get("suspects", {})),
        failing=now - known["lasts"] if known["lasts"] else None,
    )
