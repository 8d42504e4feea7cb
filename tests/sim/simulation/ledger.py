"""The observer: sees every row written, every record emitted and every batch kept by the sink, and says which invariant broke."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from simulation.rows import Rows
from simulation.stream import Stream, UserRecord

from sluice_lab.fakes.table import MemoryTable

Batch = Mapping[str, tuple[str, ...]]
INVARIANTS = (
    "no_record_lost",
    "no_record_twice_in_an_idempotent_sink",
    "order_within_shard",
    "silent_before_next",
    "standby_is_silent",
    "positions_only_grow",
    "batch_content_is_fixed",
    "nothing_deleted",
    "only_the_past_is_folded",
    "only_accepted_losses",
    "only_poison_excluded",
    "letters_are_final_with_their_batch",
    "one_beginning",
    "one_owner",
    "one_stream",
    "known_rows",
    "what_it_says_is_true",
    "progress",
)


@dataclass(frozen=True, slots=True)
class Emission:
    """A task hands the records of a shard over. `paused`: it stood still for longer than the claim of silence bears."""

    generation: int
    batch: int
    shard: str
    key: str
    attempt: int
    records: tuple[str, ...]
    paused: bool = False


@dataclass
class Sink:
    """A sink that is idempotent by (consumer, batch): what it kept of each batch."""

    batches: dict[tuple[str, int], Batch] = field(default_factory=dict)

    def has(self, pair: tuple[str, int]) -> bool:
        return pair in self.batches


class Ledger(Rows):
    """Everything that became visible outside a process, and the claims about it.

    Attributes:
        owed: names of the user records that have to be delivered, by shard, in order.
        read_before: names of those that the system which this one replaces has read, or that came before a start at LATEST.
        waived: batches that `process` declared dealt with although its sink does not hold all of them.
        let_go: names of what it let go so, by batch.
    """

    def __init__(self, table: MemoryTable, stream: Stream) -> None:
        super().__init__(table, stream)
        self.owed: dict[str, list[str]] = {}
        self.read_before: set[str] = set()
        self.waived: set[tuple[str, int]] = set()
        self.let_go: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._noted: set[str] = set()
        self.sink = Sink()
        self._speakers: dict[str, list[Emission]] = defaultdict(list)

    def owes(self, records: Iterable[UserRecord]) -> None:
        for record in records:
            self.owed.setdefault(record.shard, []).append(record.name)

    def holds(self, batch: int) -> bool:
        return any(number == batch for _, number in self.sink.batches)

    def _committed(self, consumer: str, number: int) -> None:
        kept = self.sink.batches.get((consumer, number), {})
        for (shard, batch), contents in self.contents.items():
            if batch == number and kept.get(shard, ()) not in [content.names for content in contents]:
                if (consumer, number) in self.waived and not kept.get(shard):
                    self.let_go[consumer, number].update(contents[-1].names)
                else:
                    self.breaks("no_record_lost", f"batch {number} is committed; {shard}: {contents[-1]} bound, the sink has {kept.get(shard)}")
        shards = {key.removeprefix("shard/"): row for key, row in self.rows.items() if key.startswith("shard/")}
        self._noted.update(f"{shard}: {row['note']}" for shard, row in shards.items() if row["batch"] == number and "note" in row)

    def _reset_is_done(self) -> None:
        """Where records of a parent come again, so does all that came after them."""
        have, missing = self._have(), self.missing()
        for shard, parents in self.stream.parents.items():
            kept = [r.name for r in self.stream.log[self.created, shard] if r.name in have and not self.stream.expired(self.created, r)]
            again = [name for parent in parents for name in missing.get(parent, ()) if name in self.moves.returned]
            if kept and again:
                self.breaks("order_within_shard", f"{kept} of {shard} stay delivered, and {again} of its parents come again")

    def _given_up(self, consumer: str, number: int) -> None:
        self.waived.add((consumer, number))

    def _comes_again(self, shard: str, names: set[str]) -> None:
        self.read_before -= names
        self.owed[shard] = sorted({*self.owed.get(shard, ()), *names}, key=int)

    def idles(self) -> None:
        """A driver says that it is idle, and so at the tip of every shard."""
        behind = {key: row["behind"] for key, row in self.rows.items() if key.startswith("shard/") and row["end"]["at"] != "END" and row["behind"]}
        if behind:
            self.breaks("what_it_says_is_true", f"a driver says that it is idle, and its rows that they are behind: {behind}")

    def unreported(self) -> set[str]:
        """Possible losses that committed rows noted, and that no epoch has reported."""
        return self._noted - self.reported

    def emit(self, emission: Emission) -> None:
        contents = self.contents.get((emission.shard, emission.batch), [])
        known = [content.names for content in contents if content.generation <= emission.generation]
        if not known or emission.records not in (known if emission.paused else known[-1:]):
            self.breaks("batch_content_is_fixed", f"{emission}: bound {contents}")
        if emission.paused:
            return
        speakers = self._speakers[emission.shard]
        for other in speakers:
            same_task = (other.generation, other.key) == (emission.generation, emission.key)
            if other.generation > emission.generation or (same_task and other.attempt > emission.attempt):
                self.breaks("silent_before_next", f"{emission} after {other}")
        speakers.append(emission)

    def keep(self, pair: tuple[str, int], content: Batch) -> None:
        if self.sink.has(pair):
            return
        late = self.let_go[pair]  # an epoch that stood still may write what a later one declared dealt with: it is in the sink once
        have = (self._have() | self.read_before) - late
        if twice := have & {name for names in content.values() for name in names}:
            self.breaks("no_record_twice_in_an_idempotent_sink", f"batch {pair[1]} brings {sorted(twice)} again")
        for shard, names in content.items():
            self._in_order(shard, tuple(name for name in names if name not in late), have)
        self.sink.batches[pair] = content

    def _have(self) -> set[str]:
        """What was dealt with, and has not been moved back over since."""
        let_go = ((number, name) for (_, number), names in self.let_go.items() for name in names)
        kept = ((number, name) for (_, number), shards in self.sink.batches.items() for names in shards.values() for name in names)
        returned = self.moves.returned
        return {name for number, name in (*let_go, *kept) if number > returned.get(name, 0)}

    def _in_order(self, shard: str, names: tuple[str, ...], have: set[str]) -> None:
        before = [name for name in self.owed.get(shard, ()) if name in have]
        kept = (name for name in names if name.isdecimal() and name not in self.told)  # a late epoch may still bring what was given up
        numbers = [*([max(map(int, before))] if before else []), *map(int, kept)]
        if numbers != sorted(numbers):
            self.breaks("order_within_shard", f"{shard}: {numbers}")
        for ancestor in self._ancestors(shard) if names else ():
            if missing := [name for name in self.missing().get(ancestor, ()) if name not in have]:
                self.breaks("order_within_shard", f"records of {shard} before {missing} of {ancestor}, which it follows")

    def _ancestors(self, shard: str) -> set[str]:
        """All generations: a shard in between may be passed over."""
        left, found = [shard], set[str]()
        while left:
            new = set(self.stream.parents.get(left.pop(), ())) - found
            found |= new
            left += new
        return found

    def missing(self) -> dict[str, list[str]]:
        """What is owed, by shard: not in the sink, no final letter, not told as lost.

        Of a shard that expired before any epoch listed it nobody can tell.
        """
        done = self._have() | self.told | self.moves.passed_over | ((self.excluded & self.letters) - self.moves.again)
        known = (shard for shard in self.owed if f"shard/{shard}" in self.rows or shard in self.folded or shard in self.stream.shards)
        return {shard: left for shard in known if (left := [name for name in self.owed[shard] if name not in done])}
