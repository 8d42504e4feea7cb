"""What the observer makes of rows: it sees every one that is written, and holds it to the claims about rows.

It shares no code with what it judges: positions are compared as the stored maps are, and what a range contains is counted in the stream's own log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simulation.moves import Moves
from simulation.stream import Stream, UserRecord
from simulation.versions import Versions

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.protocol.row_kinds import kind_of
from sluice_consumer.shards.ranges import FetchRequest
from sluice_consumer.shards.reader import FOLLOWED
from sluice_lab.fakes.stream import DAY_MILLIS
from sluice_lab.fakes.table import MemoryTable

Row = Mapping[str, Any]
HOUR_MILLIS = 3_600_000
FIXED = ("start", "end", "first", "records", "children")


def rank(position: Row) -> tuple[int, int, float]:
    """Where a stored position is in its shard, to compare; the whole of an aggregate comes after each of its parts."""
    kind = ("TRIM_HORIZON", "TIMESTAMP", "AFTER", "END").index(position["at"])
    return kind, int(position.get("sequence", position.get("millis", 0))), position.get("sub", float("inf"))


@dataclass(frozen=True, slots=True)
class Content:
    """What a batch contains of a shard: the user records by name, and since which epoch that is so."""

    names: tuple[str, ...]
    generation: int


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes: a driver of this owner ("": it has none), in a cluster of these names; or a person who hands the table over.

    `spec`: the hash of a driver's spec. `paused`: a task that stood still for longer than the claim of
    silence bears.
    """

    owner: str = ""
    clusters: tuple[str, ...] = ()
    hands_over: bool = False
    paused: bool = False
    spec: str = ""


class Rows:
    """All rows as they stand, and what they have promised.

    Attributes:
        broken: violations: the claim's name, and how.
        rows: as they were written last.
        writer: who writes the consumer row next.
        owned_in: all that the cluster is known by whose driver took the lease last, or that a person named, whatever the row says.
        contents: by shard and batch: what was bound; then what was left of it, each time that a loss was accepted.
        accepted: the batches whose loss a person has accepted.
        told: names of the records that retention took, and of which a row says so.
        poison: names of those that `process` cannot deal with. letters: of those with a final letter. excluded: of those that a row takes out.
        pending: letters that are not final, by the name of their text.
        sparse: see `Habits`.
        moves: what resets did to what is owed.
        folded: shards that a row says are over, their own rows may be gone. reported: the possible losses that some epoch has reported.
    """

    def __init__(self, table: MemoryTable, stream: Stream) -> None:
        self.table, self.stream = table, stream
        self.broken: list[tuple[str, str]] = []
        self.sparse = 0
        self.rows: dict[str, dict[str, Any]] = {}
        self.writer = Writer()
        self.owned_in: set[str] = set()
        self.contents: dict[tuple[str, int], list[Content]] = {}
        self.accepted: set[int] = set()
        self.told: set[str] = set()
        self.poison: set[str] = set()
        self.letters: set[str] = set()
        self.pending: dict[str, tuple[DeadLetter, ...]] = {}
        self.excluded: set[str] = set()
        self.folded: set[str] = set()
        self.reported: set[str] = set()
        self.versions = Versions(lambda how: self.breaks("what_it_says_is_true", how))
        self.moves = Moves(stream)
        self._aged: set[str] = set()  # shards that a reset moved while their parents' records show how old they are
        self._filled = 0  # the last committed batch that contained shards
        self._looked_at: set[str] = set()
        self._at_tip: dict[str, int] = {}  # the epoch whose last range found nothing and came to the tip
        self._seen_open: set[str] = set()  # shards of which a time is known at which they were open: their children are younger
        self._last_arrival: dict[str, int] = {}  # of the last record that was bound
        self._tip_at: dict[str, int] = {}  # an hour before the last range, if it came to the tip and found nothing: the shard was open
        self._read_at: dict[str, int] = {}  # up to when a shard was read for certain

    def breaks(self, invariant: str, how: str) -> None:
        self.broken.append((invariant, how))

    def of(self, invariant: str) -> list[str]:
        return [how for name, how in self.broken if name == invariant]

    @property
    def committed(self) -> int:
        return int(self.rows.get("consumer", {}).get("committed", 0))

    @property
    def created(self) -> int:
        return int(self.rows["consumer"]["streamCreated"])

    def wrote(self, keys: list[str]) -> None:
        """Some rows were written, in one step."""
        self._gone(self.rows.keys() - self.table.rows.keys())
        for key in sorted(self.table.rows.keys() & keys):
            row, former = self.table.rows[key], self.rows.get(key)
            self.rows[key] = row
            self._known(key, row)
            if key == "consumer":
                self._consumer(row, former or {})
            elif key.startswith("shard/") and "consumer" in self.rows:  # before that they are a migrator's, and nobody's place
                self._shard(key.removeprefix("shard/"), row, former)
            elif key.startswith(("bootstrap/", "ended/", "reset/")) and former is not None and former != row:
                self.breaks("nothing_deleted", f"{key} was written over")
            elif key.startswith("ended/"):
                self._folds(row)
            elif key == "versions":
                self.versions.begins(row, self.rows)
            elif key == "migration" and former is not None and former["state"] == "COMPLETE" and former != row:
                self.breaks("one_beginning", f"a complete migration was written over: {former} -> {row}")
        self._one_beginning(self.rows.get("consumer"), self.rows.get("migration"))

    def _gone(self, keys: set[str]) -> None:
        """Only rows of folded shards go."""
        if gone := [key for key in sorted(keys) if key.partition("/")[2] not in self.folded]:
            self.breaks("nothing_deleted", f"rows {gone} are gone")
        for key in keys:
            del self.rows[key]

    def _folds(self, ended: Row) -> None:
        for shard in sorted(ended["shards"] - self.folded):
            row = self.rows.get(f"shard/{shard}", {"end": {"at": "nowhere"}, "batch": 0})
            if row["end"]["at"] != "END" or row["batch"] > self.committed or (self.created, shard) not in self.stream.log:
                self.breaks("only_the_past_is_folded", f"{shard} is not over: {row}")
            if self.created == self.stream.created_millis and shard in self.stream.shards:
                self.breaks("only_the_past_is_folded", f"{shard} was folded, and is still in the stream")
            if 0 < self._filled <= row["batch"]:
                self.breaks("only_the_past_is_folded", f"{shard} was folded, and the last batch that contained shards, {self._filled}, had it")
            if "note" in row and f"{shard}: {row['note']}" not in self.reported:
                self.breaks("only_the_past_is_folded", f"{shard} was folded before anybody reported that {row['note']}")
        self.folded |= ended["shards"]

    def _known(self, key: str, row: Row) -> None:
        """A table has to be read again: by other versions, by `show`, and as the source of a migration."""
        kind = kind_of(key)
        if kind is None or kind.unknown(row):
            self.breaks("known_rows", f"{key}: {kind.unknown(row) if kind else 'is of no kind in protocol.row_kinds'}")

    def _one_beginning(self, consumer: Row | None, migration: Row | None) -> None:
        """A consumer begins by a plan of its own or by a complete migration; never by both, and by a migration only when that is complete."""
        complete = migration is not None and migration["state"] == "COMPLETE"
        if complete != (consumer is not None and "plan" not in consumer) or (consumer is not None and migration is not None and not complete):
            self.breaks("one_beginning", f"consumer {consumer} beside migration {migration}")

    def _consumer(self, row: Row, former: Row) -> None:
        if former.get("consumerId", row["consumerId"]) != row["consumerId"]:
            self.breaks("nothing_deleted", "the consumer's id changed")
        self._owned(row, former)
        if row.get("token") != former.get("token") and row["generation"] <= former.get("generation", -1):
            self.breaks("positions_only_grow", f"two epochs have generation {row['generation']}")
        for name in ("generation", "committed"):
            if row[name] < former.get(name, 0):
                self.breaks("positions_only_grow", f"{name} {former[name]} -> {row[name]}")
        self._resets(row, former)
        for number in range(former.get("committed", 0) + 1, row["committed"] + 1):
            if any(shard["batch"] == number for key, shard in self.rows.items() if key.startswith("shard/")):
                self._filled = number
            self.versions.committed(number, self.writer.spec, self.rows)
            self._committed(row["consumerId"], number)
        if row.get("filled", 0) != self._filled:
            self.breaks("what_it_says_is_true", f"batch {self._filled} was the last with shards, and the consumer row says {row.get('filled')}")

    def _resets(self, row: Row, former: Row) -> None:
        """A plan is named once, and is carried out when it is done."""
        began, ended = row.get("reset"), former.get("reset")
        if began and began != ended and row["committed"] > former["committed"]:
            self._given_up(row["consumerId"], row["committed"])
        if ended and began != ended:
            left = [shard for shard, move in self.moves.planned({**self.rows, "consumer": former}).items() if self._is_not_at(shard, move["to"])]
            if left:
                self.breaks("positions_only_grow", f"the reset {ended} is done, and {left} were not moved")
            self._reset_is_done()
            self.versions.reset(self.rows)
        if ended and row["committed"] > former["committed"]:
            self.breaks("positions_only_grow", f"batch {row['committed']} was committed while the reset {ended} was under way")

    def _is_not_at(self, shard: str, position: Row) -> bool:
        return bool(self.rows[f"shard/{shard}"]["end"] != position)

    def _reset_is_done(self) -> None:
        raise NotImplementedError

    def _given_up(self, consumer: str, number: int) -> None:
        raise NotImplementedError

    def _owned(self, row: Row, former: Row) -> None:
        """The owner stays until a person hands the table over, and only the owner's drivers commit; a cluster may get another of its names."""
        now, before = ((r.get("owner"), r.get("cluster")) for r in (row, former))
        if before not in {(None, None), now} and not self.writer.hands_over and not (self._ours(*before) and self._ours(*now)):
            self.breaks("one_owner", f"{before} -> {now} by {self.writer}")
        if row["generation"] > former.get("generation", 0):
            self.owned_in = set(row.get("cluster", "").split()) if self.writer.hands_over else {*self.writer.clusters} or self.owned_in
        if row["committed"] > former.get("committed", 0) and self.writer.owner and not self._ours(*now):
            self.breaks("one_owner", f"{self.writer} commits on the table of {now}")

    def _ours(self, owner: str | None, cluster: str | None) -> bool:
        return owner == self.writer.owner and not set(self.writer.clusters).isdisjoint((cluster or "").split())

    def _committed(self, consumer: str, number: int) -> None:
        raise NotImplementedError

    # -- shards --------------------------------------------------------------------------------------------------------------------

    def _shard(self, shard: str, row: Row, former: Row | None) -> None:
        if (self.created, shard) not in self.stream.log:
            self.breaks("one_stream", f"the stream that the table is of never had {shard}")
        if former is None:
            return
        if row["generation"] < former["generation"] or row["batch"] < former["batch"]:
            self.breaks("positions_only_grow", f"{shard} went back: {former} -> {row}")
        if row["batch"] != former["batch"]:
            self._bound(shard, row, former)
        elif self.rows["consumer"].get("reset") and row["end"] != former["end"]:
            self._moved(shard, row, former)
        elif changed := {name: (former.get(name), row.get(name)) for name in FIXED if former.get(name) != row.get(name)}:
            self._smaller(shard, row, changed)

    def _moved(self, shard: str, row: Row, former: Row) -> None:
        """A reset moved a shard: as its plan says, and from where that found it."""
        if shard in self.folded:
            self.breaks("only_the_past_is_folded", f"{shard} was folded, and is moved: {row}")
        if problem := self.moves.problem(self.moves.planned(self.rows).get(shard), row, former, self.committed):
            self.breaks("positions_only_grow", f"{shard} was moved, and {problem}: {former} -> {row}")
        again, _ = self.moves.moved(self.created, shard, row, former, self.committed)
        self.told -= again
        self.told.update(record.name for record in self._expired(shard, row["end"]))  # the plan says so; from here on nobody is owed them
        self._comes_again(shard, again)
        self._looked_at.discard(shard)
        self._seen_open.discard(shard)
        since = max(map(self._open_at, row.get("parents", ())), default=0)
        if since > self.stream.now() - self.stream.retention_millis:  # what came from then on was there when it was asked for
            self._aged.add(shard)
        self._at_tip[shard] = self._read_at[shard] = self._tip_at[shard] = 0  # its row does not know any more that it was open then

    def _comes_again(self, shard: str, names: set[str]) -> None:
        raise NotImplementedError

    def _bound(self, shard: str, row: Row, former: Row) -> None:
        """A range was bound or closed: it goes on where the last one ended, and passes over nothing that it does not tell."""
        if shard in self.folded:
            self.breaks("only_the_past_is_folded", f"{shard} was folded, and is read again: {row}")
        if row["start"] != former["end"] or rank(row["end"]) < rank(row["start"]):
            self.breaks("positions_only_grow", f"{shard}: {former['end']} -> ({row['start']}, {row['end']}]")
        if row["batch"] <= self.committed:
            self.breaks("batch_content_is_fixed", f"{shard} was bound in batch {row['batch']}, which is committed")
        put = self.stream.between(self.created, shard, row)
        passed, bound = put[: len(put) - row["records"]], put[len(put) - row["records"] :]
        if len(put) < row["records"] or row.get("first") != (str(bound[0].number) if bound else None):
            strange = self.stream.created_millis != self.created
            self.breaks("one_stream" if strange else "batch_content_is_fixed", f"{shard}: {row} is not what was put there: {put}")
        unknown = self._seen_open.isdisjoint(row.get("parents", ()))
        first_look = shard not in self._looked_at and unknown and shard not in self._aged
        told = "note" in row or (first_look and self._begins_with_what_is_there(row, former["start"]["at"]))
        if "note" in row and not list(self._expired(shard, row["start"])):
            self._false(shard, row)
        if told:  # a note says that what came after `start` may have expired
            self.told.update(record.name for record in self._expired(shard, row["start"]))
        if row["readers"]:  # a close has none: nobody looked
            self._looked_at.add(shard)
            self._at_tip[shard] = 0 if row["records"] or row["behind"] else row["generation"]
        if row["readers"] and (row["records"] or row["end"]["at"] != "END" or row["start"]["at"] == "TIMESTAMP" or not unknown):
            self._seen_open.add(shard)
        self._time(shard, row, bound)
        if silent := [record for record in passed if record.name not in self.told]:
            self.breaks("no_record_lost", f"{shard}: {row} passes over {silent}")
        self.contents[shard, row["batch"]] = [Content(tuple(record.name for record in bound), row["generation"])]

    def suspects(self, place: FetchRequest, note: str) -> None:
        """A reader suspects a loss by a retention that was raised since. It has looked: as long as an older record is there, nothing is lost."""
        start = place.position.to_map()
        if "only for" in note and not list(self._expired(place.shard_id, start)) and (held := self._held_before(place.shard_id, start)):
            self.breaks("what_it_says_is_true", f"{place.shard_id}: nothing expired, {held[:2]} came before and are still there, and it says {note}")

    def _held_before(self, shard: str, start: Row) -> list[UserRecord]:
        """Records that came before a place, and that the stream still has: of this shard, or of its parents where it begins."""
        before = self.stream.parents.get(shard, ()) if start["at"] == "TRIM_HORIZON" else (shard,)
        put = [record for one in before for record in self.stream.log.get((self.created, one), ())]
        return [record for record in put if not (record.shard == shard and record.after(start)) and not self.stream.expired(self.created, record)]

    def _false(self, shard: str, row: Row) -> None:
        """Nothing expired, and a reader suspects it. It must not if it can know better: from what it has read of the shard, or of its parents."""
        if self.writer.paused:
            return
        if self._at_tip.get(shard) == row["generation"]:
            self.breaks("what_it_says_is_true", f"{shard}: its epoch has watched it all along, nothing expired, and it says {row['note']}")
        if " keeps records for" not in row["note"]:
            return  # one by a shorter retention: see `suspects`
        follows = row["note"].startswith("it follows")
        if follows and self.sparse > FOLLOWED:
            return  # a parent's last record does not come in time, so nobody knows when that was open (docs/protocol.md, "Ages")
        known = [self._open_at(parent) for parent in row.get("parents", ())] if follows else [self._read_at.get(shard, 0)]
        if (since := max(known, default=0)) and self.stream.now() - since < min(DAY_MILLIS, self.stream.retention_millis) - 60_000:
            self.breaks("what_it_says_is_true", f"{shard}: nothing expired, it is read up to {since} at least, and it says {row['note']}")

    def _open_at(self, shard: str) -> int:
        """A time at which a shard was open, as its reader could see; 0: none."""
        return max(self._last_arrival.get(shard, 0), self._tip_at.get(shard, 0))

    def _time(self, shard: str, row: Row, bound: list[UserRecord]) -> None:
        """Writes down what a reader could know by now. A range is bound a while after it was read."""
        late = 0 if self.writer.paused or not row["readers"] else self.stream.now() - HOUR_MILLIS
        if bound:
            self._last_arrival[shard] = bound[-1].arrival
        if row["end"]["at"] != "END":
            self._tip_at[shard] = 0 if bound or row["behind"] else late
        if bound and row["behind"]:
            self._read_at[shard] = bound[-1].arrival
        elif not row["behind"]:  # a reply that was as full as the limit does not say that it reached the tip
            self._read_at[shard] = max(self._read_at.get(shard, 0), bound[-1].arrival if bound else late)

    @staticmethod
    def _begins_with_what_is_there(row: Row, at: str) -> bool:
        """What expired before was owed to nobody, or cannot be known: at another consumer's checkpoint, nothing was found that comes after it."""
        return at == "TRIM_HORIZON" or (at == "AFTER" and not row["records"] and row["end"]["at"] != "END")

    def _expired(self, shard: str, start: Row) -> Iterator[UserRecord]:
        log = self.stream.log.get((self.created, shard), [])
        return (record for record in log if record.after(start) and self.stream.expired(self.created, record))

    def _smaller(self, shard: str, row: Row, changed: Mapping[str, Any]) -> None:
        """A bound range changed: it was shortened, its only record was excluded, or a loss was accepted; or a promise is broken."""
        if row["batch"] > self.committed and "end" in changed:
            self._shortened(shard, row, changed)
        elif row["batch"] > self.committed and row.get("excluded"):
            self._excluded(shard, row, changed)
        else:
            self._changed(shard, row, changed)

    def _shortened(self, shard: str, row: Row, changed: Mapping[str, Any]) -> None:
        known = self.contents[shard, row["batch"]]
        left = tuple(record.name for record in self.stream.between(self.created, shard, row))
        names = tuple(name for name in left if name in known[-1].names)  # what had expired before the range was bound was never in it
        if known[-1].names[: len(names)] != names or len(names) != row["records"] or (row.get("first") is None) != (not names):
            self.breaks("batch_content_is_fixed", f"{shard} in batch {row['batch']}: {changed} is no beginning of {known[-1]}")
        if "children" in row or self.holds(row["batch"]):
            self.breaks("batch_content_is_fixed", f"{shard} in batch {row['batch']} was shortened, and is in the sink or has children: {row}")
        known.append(Content(names, row["generation"]))

    def _excluded(self, shard: str, row: Row, changed: Mapping[str, Any]) -> None:
        known = self.contents[shard, row["batch"]]
        names = set(known[-1].names)
        if row["records"] or "first" in row or len(names) != 1:
            self.breaks("batch_content_is_fixed", f"{shard} in batch {row['batch']}: {changed}, of {known[-1]}")
        if not names <= self.letters | {letter.data.decode() for letters in self.pending.values() for letter in letters}:
            self.breaks("no_record_lost", f"{shard}: {names} excluded without a dead letter")
        if not names <= self.poison:
            self.breaks("only_poison_excluded", f"{shard}: {names} would have passed")
        self.excluded |= names
        self.moves.again -= names
        known.append(Content((), row["generation"]))

    def publishes(self, text: str) -> None:
        if text not in self.pending and not self.letters:
            self.breaks("letters_are_final_with_their_batch", f"{text} is gone before it was published")
        for letter in self.pending.get(text, ()):
            name = letter.data.decode()
            if letter.batch > self.committed or name not in self.excluded:
                self.breaks("letters_are_final_with_their_batch", f"{name} of batch {letter.batch}; committed: {self.committed}")
            self.letters.add(name)

    def holds(self, batch: int) -> bool:
        raise NotImplementedError

    def _changed(self, shard: str, row: Row, changed: Mapping[str, Any]) -> None:
        """What was bound changed: a loss that a person has accepted, of exactly what retention took; or a broken promise."""
        if changed.keys() - {"first", "records"} or row["batch"] <= self.committed:
            self.breaks("batch_content_is_fixed", f"{shard} in batch {row['batch']}: {changed}")
            return
        put = self.stream.between(self.created, shard, row)
        known = self.contents[shard, row["batch"]]
        held = [record for record in put if record.name in known[-1].names]
        left = [record for record in held if not self.stream.expired(self.created, record)]
        first = str(left[0].number) if left else None
        if row["batch"] not in self.accepted or left == held or (row.get("first"), row["records"]) != (first, len(left)) or "note" not in row:
            self.breaks("only_accepted_losses", f"{shard} in batch {row['batch']}: {changed}; of {held} there is {left}; accepted: {self.accepted}")
        self.told.update(record.name for record in held if record not in left)
        known.append(Content(tuple(record.name for record in left), row["generation"]))
