"""One-line mutants of the migrator, each a rule taken out, with the schedule that notices and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from migrating import consumers, rivals, schedules
from migrating.cases import CASES, KCL1
from migrating.stage import Case
from mutants import Apply, IgnoreConditions, Mutant, Patch, entering

from sluice_checkpoints.errors import LeaseHeld, ProtocolViolation, Refused
from sluice_checkpoints.formats import detect
from sluice_checkpoints.formats.kinsumer import Kinsumer
from sluice_checkpoints.migrate import migrator, store
from sluice_checkpoints.migrate.claim import HeldClaim
from sluice_checkpoints.migrate.migrator import Migrator
from sluice_checkpoints.migrate.placement import Choices
from sluice_checkpoints.migrate.plan import MigrationPlan
from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.protocol import lease
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, ConsumerRow
from sluice_checkpoints.protocol.table import NEW_ROW, Check, Member, Put, Update, equals

HALF_MADE, SNOWPLOW = (next(c for c in CASES if c.name == name) for name in ("NiFi interrupted, main table missing", "kinsumer of snowplow"))


@dataclass(frozen=True, kw_only=True)
class MigratorMutant(Mutant):
    """A rule of the migrator taken out.

    Attributes:
        noticed_by: the schedule that fails.
        says: how its message begins: the claim that does not hold.
    """

    noticed_by: Callable[[], object]
    says: str


MUTANTS: list[MigratorMutant] = []


def mutant(name: str, noticed_by: Callable[..., object], says: str, case: Case = KCL1, **asked: Any) -> Callable[[Apply], Apply]:
    return entering(MUTANTS, lambda apply: MigratorMutant(name=name, apply=apply, noticed_by=lambda: noticed_by(case, **asked), says=says))


def ignoring(patch: Patch, method: str, members: Callable[[Member], bool]) -> None:
    real = getattr(MigrationStore, method)

    def without(self: MigrationStore, *args: Any) -> Any:
        table: Any = IgnoreConditions(self.table, lambda member, _condition: members(member))
        return real(MigrationStore(table), *args)

    patch.setattr(MigrationStore, method, without)


# -- the claim ---------------------------------------------------------------------------------------------------------------------

BOTH: dict[str, Any] = {"schedules": 60}
SOME: dict[str, Any] = {"share": 0.3}


@mutant("the end does not ask for the claim", rivals.usurpers, "only_the_claimant_writes", **SOME)
def complete_without_claim(patch: Patch) -> None:
    """A migrator that slept completes what another is copying."""
    ignoring(patch, "complete", lambda member: member.key == MIGRATION)


@mutant("rows are written without a look at the claim", rivals.usurpers, "only_the_claimant_writes", **SOME)
def rows_without_claim(patch: Patch) -> None:
    """A migrator that slept writes its old plan."""
    ignoring(patch, "write_rows", lambda member: isinstance(member, Check))


@mutant("the copy is announced without the claim", rivals.usurpers, "only_the_claimant_writes", **SOME)
def start_without_claim(patch: Patch) -> None:
    """The digests of another plan stand beside the rows."""
    ignoring(patch, "start_copy", lambda _: True)


@mutant("a heartbeat does not ask whose claim it is", rivals.pauses, "only_the_claimant_writes")
def beat_without_claim(patch: Patch) -> None:
    """The sleeper never learns that it was replaced, and keeps the claim of the other alive."""
    ignoring(patch, "beat", lambda _: True)


@mutant("a release does not ask whose claim it is", rivals.usurpers, "only_the_claimant_writes", **SOME)
def release_without_claim(patch: Patch) -> None:
    """The sleeper gives away what is another's."""
    ignoring(patch, "release", lambda _: True)


@mutant("a claim is taken without waiting", rivals.taking_turns, "no_live_holder_is_robbed", **BOTH)
def no_wait(patch: Patch) -> None:
    """Whoever comes later wins."""
    patch.setattr(lease.Watcher, "wait_out", lambda _self, read: read())


@mutant("no heartbeat is sent", rivals.taking_turns, "no_live_holder_is_robbed", **BOTH)
def no_beat(patch: Patch) -> None:
    """A migrator that waits for the source looks dead."""
    patch.setattr(HeldClaim, "alive", lambda _self: None)


@mutant("a claim is taken whatever has moved", rivals.taking_turns, "no_live_holder_is_robbed", **BOTH)
def take_without_condition(patch: Patch) -> None:
    """Two that waited for the same dead one both take."""
    ignoring(patch, "take_claim", lambda member: member.key == MIGRATION)


@mutant("the first claim is put over another", rivals.taking_turns, "no_live_holder_is_robbed", **BOTH)
def put_without_condition(patch: Patch) -> None:
    """Two that found none both put theirs."""
    ignoring(patch, "put_claim", lambda member: member.key == MIGRATION)


@mutant("a claim is taken beside a consumer", rivals.one_starts_at_any_call_of_the_other, "complete_and_consumer_are_one")
def take_beside_consumer(patch: Patch) -> None:
    """The migration begins again under a driver."""
    ignoring(patch, "take_claim", lambda member: member.key == CONSUMER)


@mutant("a complete migration is not recognised", schedules.crashes, "same_end")
def never_done(patch: Patch) -> None:
    """The next run waits for a claim that nobody holds."""
    patch.setattr(Migrator, "_done_before", lambda *_: None)


# -- the source --------------------------------------------------------------------------------------------------------------------


@mutant("the source is not read a third time", consumers.a_checkpoint_at_any_call, "refused_or_copied")
def no_third_look(patch: Patch) -> None:
    """What it wrote during the copy is lost."""
    real, looks = Migrator._read_source, dict[Migrator, list[migrator.SourceSnapshot]]()

    def look(self: Migrator) -> migrator.SourceSnapshot:
        seen = looks.setdefault(self, [])
        seen.append(real(self) if len(seen) < 2 else seen[-1])
        return seen[-1]

    patch.setattr(Migrator, "_read_source", look)


@mutant("the source need not be at rest", consumers.a_consumer_that_lives, "at_rest")
def no_rest(patch: Patch) -> None:
    """A consumer that is only idle goes on beside the driver."""
    patch.setattr(Migrator, "_at_rest", lambda _self, _held, before, _stream: before)


@mutant("the plan is that of the first look", consumers.a_checkpoint_at_any_call, "refused_or_copied")
def plan_of_the_first_look(patch: Patch) -> None:
    """The copy after the source moved is the same once more."""
    real, first = Migrator._plan_again, dict[Migrator, migrator.SourceSnapshot]()

    def again(self: Migrator, held: HeldClaim, stream: Any, seen: migrator.SourceSnapshot) -> Any:
        return real(self, held, stream, first.setdefault(self, seen))

    patch.setattr(Migrator, "_plan_again", again)


@mutant("tables beside the main one are not read", consumers.a_consumer_that_lives, "at_rest", SNOWPLOW)
def no_companions(patch: Patch) -> None:
    """An idle kinsumer writes nowhere else."""
    patch.setattr(Kinsumer, "companions", lambda *_: ())


@mutant("a source that cannot be read at a moment is refused for good", consumers.nifi_goes_on, "a migrator gave up", HALF_MADE)
def refused_for_good(patch: Patch) -> None:
    """Nobody looks a second time, and nobody tries again once NiFi has finished what it was doing."""
    real = detect._described

    def once(tables: Any, table: str) -> Any:
        found = real(tables, table)
        if not found:
            raise Refused(f"there is no source table {table}")
        return found

    patch.setattr(Migrator, "_read_source_again", Migrator._read_source)
    patch.setattr(detect, "_described", once)


# -- the rows ----------------------------------------------------------------------------------------------------------------------


@mutant("what was written is not compared with the plan", schedules.an_intruder, "verified")
def not_verified(patch: Patch) -> None:
    """A driver starts on rows that something else wrote."""
    patch.setattr(migrator, "digest_of", lambda _rows: "")
    patch.setattr(MigrationPlan, "digest", "")


@mutant("rows are put over whatever stands there", schedules.an_intruder, "nothing_is_overwritten")
def rows_over_anything(patch: Patch) -> None:
    """Also over a place that was moved by something that is no migrator."""
    patch.setattr(store, "_unchanged", lambda _row: ())


@mutant("rows of an earlier try are left as they are", consumers.a_source_that_moved_between_two_tries, "a migrator gave up")
def earlier_rows_stay(patch: Patch) -> None:
    """The present plan never gets in, and the migration never ends."""
    real = Migrator._write

    def write(self: Migrator, held: HeldClaim, wanted: Any, stored: Any) -> None:
        real(self, held, replace(wanted, shards=tuple(p for p in wanted.shards if p.id not in stored)), stored)

    patch.setattr(Migrator, "_write", write)


@mutant("now means the present run's", schedules.crashes, "one_t0", SNOWPLOW, unstarted="now")
def every_run_its_own_now(patch: Patch) -> None:
    """What arrives between two tries is passed over."""

    def choices(self: Migrator, _now: int) -> Choices:
        return Choices(self._ports.catalog.list_shards().date_millis, self._request.unstarted)

    patch.setattr(Migrator, "_choices", choices)


# -- the end -----------------------------------------------------------------------------------------------------------------------


@mutant("the consumer is put before its rows", schedules.crashes, "complete_and_consumer_are_one")
def consumer_first(patch: Patch) -> None:
    """A driver starts on nothing, or on half."""
    real = MigrationStore.start_copy

    def start(self: MigrationStore, claim: Any, planned: Any) -> Any:
        self.table.write(Put(ConsumerRow("id", claim.stream_arn, claim.stream_created, bootstrapped=True).to_item(), ()))
        return real(self, claim, planned)

    patch.setattr(MigrationStore, "start_copy", start)


@mutant("the end is two writes", schedules.crashes, "complete_and_consumer_are_one")
def end_in_two(patch: Patch) -> None:
    """One of them may be the last."""

    def complete(self: MigrationStore, claim: Any, consumer: ConsumerRow) -> None:
        self.table.write(Put(consumer.to_item(), ()))
        self.table.write(Update(MIGRATION, claim.mine, put={("state",): "COMPLETE", ("released",): True}))

    patch.setattr(MigrationStore, "complete", complete)


# -- replies that were lost --------------------------------------------------------------------------------------------------------


@mutant("a claim whose reply was lost is not known again", schedules.repeated_writes, "repeated_writes")
def claim_not_known(patch: Patch) -> None:
    """A migrator waits for itself."""
    patch.setattr(MigrationStore, "_claimed", lambda self, _wanted, put: self.table.transact([Check(CONSUMER, store.equals()), put]).applied)


@mutant("rows whose reply was lost are not known again", schedules.repeated_writes, "a migrator gave up")
def rows_not_known(patch: Patch) -> None:
    """It blames another program for its own rows."""

    def strange(_self: MigrationStore, rows: Any) -> None:
        raise ProtocolViolation(f"rows of {rows} were changed")

    patch.setattr(MigrationStore, "_accept_if_written", strange)


@mutant("an end whose reply was lost is not known again", schedules.repeated_writes, "repeated_writes")
def end_not_known(patch: Patch) -> None:
    """A complete migration ends as a failed one."""

    def complete(self: MigrationStore, claim: Any, consumer: ConsumerRow) -> None:
        done = Update(MIGRATION, (*claim.mine, *equals(state="COPYING")), put={("state",): "COMPLETE", ("released",): True})
        if not self.table.transact([done, Put(consumer.to_item(), (NEW_ROW,))]).applied:
            raise LeaseHeld("lost")

    patch.setattr(MigrationStore, "complete", complete)
