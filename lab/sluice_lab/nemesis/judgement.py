"""Everything that must be true after a trial, and what was measured. Pure, but for `show`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.table import Table

from sluice_lab.nemesis import takeover, witness
from sluice_lab.nemesis.takeover import Happening, Look, Pause
from sluice_lab.nemesis.witness import Pair, Seen, Stint
from sluice_lab.scenario.ledger import Account
from sluice_lab.steps import console

NAMED = 5  # of each sort of trouble; the rest is counted


@dataclass(frozen=True)
class Evidence:
    """What there is to judge from; `lease` in seconds."""

    account: Account
    seen: Seen
    looks: Sequence[Look]
    happenings: Mapping[str, Happening]
    lease: float


@dataclass(frozen=True)
class Judgement:
    """What was found.

    Attributes:
        clashes: two that worked on a shard too close to each other.
        unlike: batches whose content was not the same for all who read them.
        pauses: what was measured.
        forced: shards that were read again while executors were only added or drained.
        closest: the smallest gap under each rule that asks for a lease between.
        epochs, again: how many drivers there were, and how often a shard of a batch was read again.
    """

    account: Account
    clashes: Sequence[Pair]
    unlike: Sequence[str]
    pauses: Sequence[Pause]
    forced: int
    closest: Mapping[str, float]
    epochs: int
    again: int

    @property
    def problems(self) -> list[str]:
        """What should not be; empty if all is right."""
        return [
            *self._in_the_sinks(),
            *(f"{pause.name}: {pause.seconds:.1f} s, more than {pause.needed}" for pause in self.pauses if not pause.right),
        ]

    def _in_the_sinks(self) -> Iterator[str]:
        if not self.account.right:
            yield f"the idempotent sink: {self.account.total}, missing {self.account.lost[:NAMED]}, twice {self.account.doubled[:NAMED]}"
        yield from _some([str(pair) for pair in self.clashes])
        yield from _some([f"not the same for all who read it: {name}" for name in self.unlike])
        if self.forced:
            yield f"{self.forced} shards were read again while executors were only added or drained"


def judge(found: Evidence) -> Judgement:
    """All of it."""
    stints, released = found.seen.stints, {look.epoch for look in found.looks if look.released}
    return Judgement(
        account=found.account,
        clashes=witness.clashes(stints, released, found.lease),
        unlike=witness.unlike(stints),
        pauses=pauses(found),
        forced=sum(_again_during(stints, found.happenings[name]) for name in (takeover.UP, takeover.DOWN)),
        closest=witness.closest(stints, released, found.lease),
        epochs=len({stint.epoch for stint in stints}),
        again=witness.repeated(stints),
    )


def pauses(found: Evidence) -> list[Pause]:
    """What was measured, in the order in which it happened."""
    looks, issues, at = found.looks, found.seen.issues, found.happenings
    ordinary = takeover.longest(looks, at[takeover.CALM])
    usual = takeover.start(looks, issues, takeover.next_epoch(issues, at[takeover.RESTART].began))
    return [
        takeover.clean_restart(looks, issues, at[takeover.RESTART]),
        takeover.scaled(looks, at[takeover.UP], ordinary),
        takeover.killed_executor(looks, at[takeover.EXECUTOR], found.lease),
        takeover.scaled(looks, at[takeover.DOWN], ordinary),
        takeover.killed_driver(looks, issues, at[takeover.DRIVER], usual, found.lease),
    ]


def table(found: Judgement) -> Table:
    """The take-over times, for people."""
    shown = Table(title="Take-over: the longest time without a batch", box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for name in ("what happened", "no batch for", "at most", "which is"):
        shown.add_column(name, justify="right" if name in {"no batch for", "at most"} else "left")
    for pause in found.pauses:
        style = "" if pause.right else "bold red"
        shown.add_row(pause.name, f"{pause.seconds:.1f} s", f"{pause.most:.1f} s", pause.needed, style=style)
    return shown


def verdict(found: Judgement) -> str:
    """One paragraph."""
    gaps = ", ".join(f"{why} {gap:.1f} s" for why, gap in sorted(found.closest.items())) or "none"
    numbers = f"{found.account.total.produced:,} records, {found.epochs} epochs, {found.again} reads of a shard again; closest to each other: {gaps}"
    if found.problems:
        return "\n".join([f"✗ {numbers}", *(f"  {problem}" for problem in found.problems)])
    return f"✓ {numbers}. Every record once, in order; no two at work on a shard within a lease"


def show(found: Judgement, home: Path) -> None:
    """Print it, and keep it beside the picture."""
    console.print(table(found))
    console.print(verdict(found), soft_wrap=True, markup=False)
    console.print(f"what was done and seen: {home / 'timeline.svg'}", soft_wrap=True)
    (home / "verdict.txt").write_text(verdict(found) + "\n")


def _again_during(stints: Sequence[Stint], happening: Happening) -> int:
    """Shards of a batch that more than one attempt began in this time."""
    return witness.repeated(stint for stint in stints if happening.began <= stint.first <= happening.ended)


def _some(lines: Sequence[str]) -> list[str]:
    rest = [f"… and {len(lines) - NAMED} more"] if len(lines) > NAMED else []
    return [*lines[:NAMED], *rest]
