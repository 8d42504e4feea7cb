"""Checks everything that must hold after an experiment, and reports the measurements. Pure, except `show`."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich import box
from rich.table import Table

from sluice_checkpoints.names import counted, plural
from sluice_lab.nemesis import history, takeover
from sluice_lab.nemesis.history import History, Pair, ShardRead
from sluice_lab.nemesis.passes import PassAccount
from sluice_lab.nemesis.takeover import Pause, Sample, Window
from sluice_lab.scenario.account import Account
from sluice_lab.steps import console

SCALED = (takeover.UP, takeover.DOWN)
NAMED = 5  # problems of each sort that are named; the rest is counted


@dataclass(frozen=True)
class PoisonAccount:
    """The records on which the pipeline raises, as they were put, and what is in the dead letters."""

    put: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Each has to be a dead letter, once, and nothing else."""
        missing, more = Counter(self.put) - Counter(self.letters), Counter(self.letters) - Counter(self.put)
        told = [f"poison without a letter: {', '.join(missing)}"] if missing else []
        return told + ([f"letters of what is no poison, or twice: {', '.join(more)}"] if more else [])


@dataclass(frozen=True)
class Observations:
    """What the checker reads; `lease` in seconds. `passes`: of a run with resets; it judges the deliveries then, in place of `account`.

    `beside`: seconds that a batch of another member of the pool takes, while calm. Members share its task slots, and a drain waits for all of them.
    """

    account: Account
    history: History
    samples: Sequence[Sample]
    windows: Mapping[str, Window]
    lease: float
    poison: PoisonAccount = field(default_factory=PoisonAccount)
    passes: PassAccount | None = None
    beside: float = 0.0

    @property
    def ordinary(self) -> float:
        """The longest time between two batches while calm, in seconds."""
        return takeover.longest(self.samples, self.windows[takeover.CALM])


@dataclass(frozen=True)
class CheckResult:
    """What the checker found.

    Attributes:
        violations: pairs of reads of a shard that are too close to each other.
        divergent: batches whose content differs between reads.
        pauses: the take-over times.
        forced_rereads: reads of a shard again while executors were only added or drained.
        smallest_gaps: the smallest gap under each rule that asks for a lease between two reads.
        epochs, rereads: how many drivers there were, and how many reads were not the first of their shard and batch.
        neighbours: of the other members of the pool, by name.
    """

    account: Account
    violations: Sequence[Pair]
    divergent: Sequence[str]
    pauses: Sequence[Pause]
    forced_rereads: int
    smallest_gaps: Mapping[str, float]
    epochs: int
    rereads: int
    poison: PoisonAccount = field(default_factory=PoisonAccount)
    passes: PassAccount | None = None
    neighbours: Mapping[str, "CheckResult"] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Every check that failed; empty if all held."""
        return [
            *self._in_the_sinks(),
            *self.poison.problems,
            *(f"{name}: {problem}" for name, one in self.neighbours.items() for problem in one.problems),
            *(f"{pause.name}: {pause.seconds:.1f} s, more than {pause.needed}" for pause in self.pauses if not pause.right),
        ]

    def _in_the_sinks(self) -> Iterator[str]:
        if self.passes:
            yield from self.passes.problems
            if not self.passes.resets:
                yield "no reset was carried out, so none was checked"
        elif not self.account.right:
            missing, repeated = self.account.missing_numbers[:NAMED], self.account.repeated_numbers[:NAMED]
            yield f"the idempotent sink: {self.account.total}, missing {missing}, twice {repeated}"
        yield from _some([str(pair) for pair in self.violations])
        yield from _some([f"not the same for all attempts: {name}" for name in self.divergent])
        if self.forced_rereads:
            were = "was" if self.forced_rereads == 1 else "were"
            yield f"{counted(self.forced_rereads, 'shard')} {were} read again while executors were only added or drained"


def check(found: Observations, beside: Mapping[str, Observations] | None = None) -> CheckResult:
    """Run all checks; also of the other members of the pool, of which no pause is judged while the pool is scaled."""
    if beside:
        slowest = max(filter(math.isfinite, (one.ordinary for one in (found, *beside.values()))), default=0.0)
        found, beside = replace(found, beside=slowest), {name: replace(one, beside=slowest) for name, one in beside.items()}
    others = {name: check(one) for name, one in (beside or {}).items()}
    kept = {name: replace(one, pauses=[pause for pause in one.pauses if pause.name not in SCALED]) for name, one in others.items()}
    return replace(_check(found), neighbours=kept)


def _check(found: Observations) -> CheckResult:
    reads, released = found.history.reads, {sample.epoch for sample in found.samples if sample.released}
    return CheckResult(
        account=found.account,
        violations=history.violations(reads, released, found.lease),
        divergent=history.divergent(reads),
        pauses=pauses(found),
        forced_rereads=sum(_rereads_during(reads, found.windows[name]) for name in (takeover.UP, takeover.DOWN)),
        smallest_gaps=history.smallest_gaps(reads, released, found.lease),
        epochs=len({read.epoch for read in reads}),
        rereads=history.rereads(reads),
        poison=found.poison,
        passes=found.passes,
    )


def pauses(found: Observations) -> list[Pause]:
    """The take-over times, by time."""
    samples, invocations, windows = found.samples, found.history.invocations, found.windows
    ordinary = max(found.ordinary, found.beside)
    usual = takeover.start(samples, invocations, takeover.next_epoch(invocations, windows[takeover.RESTART].began))
    pauses = [
        takeover.clean_restart(samples, invocations, windows[takeover.RESTART], found.beside),
        takeover.scaled(samples, windows[takeover.UP], ordinary),
        takeover.killed_executor(samples, windows[takeover.EXECUTOR], found.lease),
        takeover.scaled(samples, windows[takeover.DOWN], ordinary),
        takeover.killed_driver(samples, invocations, windows[takeover.DRIVER], usual, found.lease),
    ]
    if takeover.STANDBY in windows:
        pauses.append(takeover.followed(samples, windows[takeover.STANDBY], found.lease))
    return pauses


def table(result: CheckResult) -> Table:
    """The take-over times as a table."""
    shown = Table(title="Take-over: the longest time without a batch", box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for name in ("what happened", "no batch for", "at most", "which is"):
        shown.add_column(name, justify="right" if name in {"no batch for", "at most"} else "left")
    others = [replace(pause, name=f"{name}: {pause.name}") for name, one in result.neighbours.items() for pause in one.pauses]
    for pause in (*result.pauses, *others):
        style = "" if pause.right else "bold red"
        shown.add_row(pause.name, f"{pause.seconds:.1f} s", f"{pause.most:.1f} s", pause.needed, style=style)
    return shown


def verdict(result: CheckResult) -> str:
    """The result in one paragraph."""
    gaps = ", ".join(f"{why} {gap:.1f} s" for why, gap in sorted(result.smallest_gaps.items())) or "none"
    put = result.account.total.produced
    counts = f"{put:,} {plural(put, 'record')}, {counted(result.epochs, 'epoch')}, {counted(result.rereads, 'reread')} of a shard"
    counts += f", {counted(len(result.poison.letters), 'dead letter')}" if result.poison.put else ""
    counts += f", {_of_passes(result.passes)}" if result.passes else ""
    counts += "".join(f"; {name}: {_of_neighbour(one)}" for name, one in result.neighbours.items())
    numbers = f"{counts}; smallest gaps: {gaps}"
    if result.problems:
        return "\n".join([f"✗ {numbers}", *(f"  {problem}" for problem in result.problems)])
    once = "Every record once in each pass that owes it" if result.passes else "Every record once"
    return f"✓ {numbers}. {once}, in order; no two at work on a shard within a lease"


def _of_neighbour(one: CheckResult) -> str:
    return f"{counted(one.epochs, 'epoch')}, {counted(one.rereads, 'reread')} of a shard"


def _of_passes(passes: PassAccount) -> str:
    went = ", ".join(f"after batch {one.after} to {f'batch {one.batch}' if one.batch else 'the oldest record'}" for one in passes.resets)
    return f"{counted(len(passes.resets), 'reset')} ({went}), {passes.again:,} {plural(passes.again, 'record')} again"


def show(result: CheckResult, home: Path) -> None:
    """Print the result, and write it to the timeline's folder."""
    console.print(table(result))
    console.print(verdict(result), soft_wrap=True, markup=False)
    console.print(f"faults, commits and reads: {home / 'timeline.svg'}", soft_wrap=True)
    (home / "verdict.txt").write_text(verdict(result) + "\n")


def _rereads_during(reads: Sequence[ShardRead], window: Window) -> int:
    """Rereads among the reads that began in a window."""
    return history.rereads(read for read in reads if window.began <= read.first <= window.ended)


def _some(lines: Sequence[str]) -> list[str]:
    rest = [f"… and {len(lines) - NAMED} more"] if len(lines) > NAMED else []
    return [*lines[:NAMED], *rest]
