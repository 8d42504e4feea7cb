"""What the sink that is not idempotent saw: who worked on which shard, from when to when; and what may not have happened. Pure.

Read from the lines of `sink`. The rule judged is `silent_before_next` of docs/protocol.md: no two epochs, and no two attempts of one task, work on a
shard unless a lease duration lies between. After a clean drain the next epoch may begin at once; and whatever follows within one epoch must follow.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice_lab.scenario.ledger import Place

FAR = 6  # leases


@dataclass(frozen=True, slots=True)
class Issue:
    """A driver that calls the pipeline.

    Attributes:
        epoch: the driver's pod.
        at: when, in seconds since the epoch, as all times here.
        began: when the driver's container began.
    """

    epoch: str
    batch: int
    at: float
    began: float


@dataclass(frozen=True, slots=True)
class Stint:
    """One attempt's work on one shard.

    Attributes:
        first: when it handed on its first record; `last`: when it was last seen at work.
        task: stage and partition; a later attempt of the same task has the same.
        places: of the records, in the order in which they came.
    """

    epoch: str
    batch: int
    pod: str
    task: str
    attempt: int
    shard: str
    first: float
    last: float
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """How far apart two stints have to be, in seconds, and why."""

    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two stints on one shard, the earlier first."""

    one: Stint
    other: Stint
    rule: Rule

    @property
    def gap(self) -> float:
        """Seconds from the end of the one to the beginning of the other; negative if they overlap."""
        return self.other.first - self.one.last

    def __str__(self) -> str:
        names = " and ".join(f"{stint.pod} (batch {stint.batch}, attempt {stint.attempt})" for stint in (self.one, self.other))
        return f"{self.one.shard}: {names} were {self.gap:.2f} s apart, not {self.rule.seconds:g} s ({self.rule.why})"


@dataclass(frozen=True)
class Seen:
    """All of it."""

    issues: tuple[Issue, ...]
    stints: tuple[Stint, ...]


def parse(lines: Iterable[str]) -> Seen:
    """The lines of all files, in any order."""
    found = [json.loads(line) for line in lines]
    issues = (Issue(line["epoch"], line["batch"], line["issued"], line["began"]) for line in found if "issued" in line)
    return Seen(tuple(sorted(issues, key=lambda issue: issue.at)), tuple(_stints(line for line in found if "shard" in line)))


def _stints(lines: Iterable[Mapping[str, Any]]) -> Iterator[Stint]:
    """By the beginning of each."""
    work: defaultdict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: float(line["at"])):
        work[tuple(line[name] for name in ("epoch", "batch", "pod", "task", "attempt", "shard"))].append(line)
    for (epoch, batch, pod, task, attempt, shard), found in work.items():
        places = tuple(Place(int(sequence), sub) for line in found for sequence, sub in line["places"])
        yield Stint(epoch, batch, pod, task, attempt, shard, found[0]["at"], found[-1]["at"], places)


def clashes(stints: Iterable[Stint], released: Collection[str], lease: float) -> list[Pair]:
    """The pairs that were not as far apart as they had to be.

    Args:
        stints: of all shards.
        released: epochs that released their lease after a clean drain.
        lease: its duration, in seconds.
    """
    return [pair for pair in pairs(stints, released, lease) if pair.gap < pair.rule.seconds]


def closest(stints: Iterable[Stint], released: Collection[str], lease: float) -> dict[str, float]:
    """The smallest gap that was seen under each rule that asks for one, in seconds."""
    found: dict[str, float] = {}
    for pair in pairs(stints, released, lease):
        if pair.rule.seconds:
            found[pair.rule.why] = min(pair.gap, found.get(pair.rule.why, pair.gap))
    return found


def pairs(stints: Iterable[Stint], released: Collection[str], lease: float) -> Iterator[Pair]:
    """Every two stints on one shard, but for those many leases apart: they keep every rule."""
    for shard in _by_shard(stints).values():
        for number, one in enumerate(shard):
            for other in shard[number + 1 :]:
                if other.first > one.last + FAR * lease:
                    break
                yield Pair(one, other, _rule(one, other, released, lease))


def _rule(one: Stint, other: Stint, released: Collection[str], lease: float) -> Rule:
    if one.epoch != other.epoch:
        return Rule("an epoch that was drained, and another", 0.0) if one.epoch in released else Rule("two epochs", lease)
    if (one.batch, one.task) == (other.batch, other.task):
        return Rule("two attempts of a task", lease)
    return Rule("two batches of an epoch", 0.0) if one.batch != other.batch else Rule("two tasks of a batch", lease)


def unlike(stints: Iterable[Stint]) -> list[str]:
    """Batches whose content differs between attempts: each must be the beginning of the longest one."""
    work: defaultdict[tuple[str, int], list[Stint]] = defaultdict(list)
    for stint in stints:
        work[stint.shard, stint.batch].append(stint)
    return [f"{shard}, batch {batch}" for (shard, batch), found in sorted(work.items()) if not _alike(found)]


def _alike(found: Sequence[Stint]) -> bool:
    longest = max((stint.places for stint in found), key=len)
    return all(stint.places == longest[: len(stint.places)] for stint in found)


def repeated(stints: Iterable[Stint]) -> int:
    """How many stints were another try at a shard of a batch."""
    found = [(stint.shard, stint.batch) for stint in stints]
    return len(found) - len(set(found))


def _by_shard(stints: Iterable[Stint]) -> Mapping[str, list[Stint]]:
    found: defaultdict[str, list[Stint]] = defaultdict(list)
    for stint in sorted(stints, key=lambda stint: stint.first):
        found[stint.shard].append(stint)
    return found
