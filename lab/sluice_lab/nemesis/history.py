"""The history of a run: which task attempt read which shard, from when to when; and which reads broke a rule. Pure.

It is parsed from the lines that `sink` writes. The checked rule is `silent_before_next` of docs/protocol.md. It asks for a lease duration between the
reads of one shard by two epochs, by two attempts of one task, or by two tasks of one batch. After a clean drain the next epoch may begin at once. Two
batches of one epoch must not overlap.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice_lab.scenario.account import RecordPosition

FAR = 6  # leases


@dataclass(frozen=True, slots=True)
class Invocation:
    """A driver's call of the pipeline.

    Attributes:
        epoch: the driver's pod.
        at: when, in seconds since 1970, like all times here.
        began: when the driver's container began.
    """

    epoch: str
    batch: int
    at: float
    began: float


@dataclass(frozen=True, slots=True)
class ShardRead:
    """One task attempt's read of one shard in a batch.

    Attributes:
        first: when it handed on its first record; `last`: when it was last seen at work.
        task: stage and partition; all attempts of a task have the same.
        positions: of the records, in the order in which they were read.
    """

    epoch: str
    batch: int
    pod: str
    task: str
    attempt: int
    shard: str
    first: float
    last: float
    positions: tuple[RecordPosition, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """The least gap between two reads, in seconds, and the case it is for."""

    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two reads of one shard, the earlier first."""

    one: ShardRead
    other: ShardRead
    rule: Rule

    @property
    def gap(self) -> float:
        """Seconds from the end of the one to the beginning of the other; negative if they overlap."""
        return self.other.first - self.one.last

    def __str__(self) -> str:
        names = " and ".join(f"{read.pod} (batch {read.batch}, attempt {read.attempt})" for read in (self.one, self.other))
        return f"{self.one.shard}: {names} were {self.gap:.2f} s apart, not {self.rule.seconds:g} s ({self.rule.why})"


@dataclass(frozen=True)
class History:
    """All invocations and reads of a run, each by time."""

    invocations: tuple[Invocation, ...]
    reads: tuple[ShardRead, ...]


def parse(lines: Iterable[str]) -> History:
    """The history in the lines of all files, which may come in any order."""
    found = [json.loads(line) for line in lines]
    invocations = (Invocation(line["epoch"], line["batch"], line["invoked"], line["began"]) for line in found if "invoked" in line)
    reads = _reads(line for line in found if "shard" in line)
    return History(tuple(sorted(invocations, key=lambda invocation: invocation.at)), tuple(reads))


def _reads(lines: Iterable[Mapping[str, Any]]) -> Iterator[ShardRead]:
    """The reads, by their beginning."""
    work: defaultdict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: float(line["at"])):
        work[tuple(line[name] for name in ("epoch", "batch", "pod", "task", "attempt", "shard"))].append(line)
    for (epoch, batch, pod, task, attempt, shard), found in work.items():
        positions = tuple(RecordPosition(int(sequence), sub) for line in found for sequence, sub in line["positions"])
        yield ShardRead(epoch, batch, pod, task, attempt, shard, found[0]["at"], found[-1]["at"], positions)


def violations(reads: Iterable[ShardRead], released: Collection[str], lease: float) -> list[Pair]:
    """The pairs that are closer than their rule allows.

    Args:
        reads: of all shards.
        released: epochs that released their lease after a clean drain.
        lease: its duration, in seconds.
    """
    return [pair for pair in pairs(reads, released, lease) if pair.gap < pair.rule.seconds]


def smallest_gaps(reads: Iterable[ShardRead], released: Collection[str], lease: float) -> dict[str, float]:
    """The smallest gap under each rule that asks for one, in seconds."""
    found: dict[str, float] = {}
    for pair in pairs(reads, released, lease):
        if pair.rule.seconds:
            found[pair.rule.why] = min(pair.gap, found.get(pair.rule.why, pair.gap))
    return found


def pairs(reads: Iterable[ShardRead], released: Collection[str], lease: float) -> Iterator[Pair]:
    """All pairs of reads of one shard. Pairs more than `FAR` leases apart keep every rule and are left out."""
    for shard in _by_shard(reads).values():
        for number, one in enumerate(shard):
            for other in shard[number + 1 :]:
                if other.first > one.last + FAR * lease:
                    break
                yield Pair(one, other, _rule(one, other, released, lease))


def _rule(one: ShardRead, other: ShardRead, released: Collection[str], lease: float) -> Rule:
    if one.epoch != other.epoch:
        return Rule("an epoch that was drained, and another", 0.0) if one.epoch in released else Rule("two epochs", lease)
    if (one.batch, one.task) == (other.batch, other.task):
        return Rule("two attempts of a task", lease)
    return Rule("two batches of an epoch", 0.0) if one.batch != other.batch else Rule("two tasks of a batch", lease)


def divergent(reads: Iterable[ShardRead]) -> list[str]:
    """Batches whose content differs between reads: each read must be a prefix of the longest one."""
    work: defaultdict[tuple[str, int], list[ShardRead]] = defaultdict(list)
    for read in reads:
        work[read.shard, read.batch].append(read)
    return [f"{shard}, batch {batch}" for (shard, batch), found in sorted(work.items()) if not _alike(found)]


def _alike(found: Sequence[ShardRead]) -> bool:
    longest = max((read.positions for read in found), key=len)
    return all(read.positions == longest[: len(read.positions)] for read in found)


def rereads(reads: Iterable[ShardRead]) -> int:
    """How many reads were not the first of their shard and batch."""
    found = [(read.shard, read.batch) for read in reads]
    return len(found) - len(set(found))


def _by_shard(reads: Iterable[ShardRead]) -> Mapping[str, list[ShardRead]]:
    found: defaultdict[str, list[ShardRead]] = defaultdict(list)
    for read in sorted(reads, key=lambda read: read.first):
        found[read.shard].append(read)
    return found
