"""Mutants of how a table begins, and of whose stream it is."""

from __future__ import annotations

from dataclasses import replace

from simulation import habits
from simulation.mutant import Patch, mutant, without_condition

from sluice_checkpoints.migrate.store import MigrationStore
from sluice_checkpoints.protocol.table import NEW_ROW
from sluice_consumer.batches import consumer
from sluice_consumer.process import supervisor
from sluice_consumer.shards import reader


@mutant(
    "a bootstrap asks for no migration",
    "The first start: neither a consumer nor a migration exists",
    stories="a_bootstrap_beside_a_claim a_job_that_crashed_half_way",
)
def bootstrap_beside_a_claim(patch: Patch) -> None:
    """A driver begins at the beginning while a migrator copies places."""
    without_condition(patch, "create_consumer", lambda condition: condition == NEW_ROW)


@mutant("a claim asks for no consumer", "Steps: 2, checks there is no `consumer`", stories="a_claim_beside_a_bootstrap")
def claim_beside_a_consumer(patch: Patch) -> None:
    """A migrator writes places under a driver."""
    without_condition(patch, "put_claim", lambda condition: condition == NEW_ROW, MigrationStore)


@mutant(
    "a driver does not ask for the end of its migration",
    "The first start: no driver starts before it is complete",
    stories="a_driver_before_its_migration",
)
def no_gate(patch: Patch) -> None:
    """It begins a table of its own, before the Job has claimed it."""
    real = supervisor.prepare
    patch.setattr(supervisor, "prepare", lambda config, *ports: real(replace(config, migrate_from=None), *ports))


@mutant("a late migrator writes rows whatever stands there", "Steps: 5", stories="a_late_copy_under_a_driver")
def rows_under_a_driver(patch: Patch) -> None:
    """A driver's shards go back."""
    without_condition(patch, "write_rows", lambda _: True, MigrationStore)


@mutant("a late migrator completes whatever stands there", "Steps: 7", stories="a_late_end_under_a_driver")
def end_under_a_driver(patch: Patch) -> None:
    """The consumer begins a second time, under another id."""
    without_condition(patch, "complete", lambda _: True, MigrationStore)


@mutant(
    "the end of a migration asks for no consumer alone",
    "Steps: 7",
    harmless="the claim of a migrator that slept is another's, or complete: it is asked for in the same transaction",
)
def end_beside_a_consumer(patch: Patch) -> None:
    """The second lock alone."""
    without_condition(patch, "complete", lambda condition: condition == NEW_ROW, MigrationStore)


# -- another stream ----------------------------------------------------------------------------------------------------------------


@mutant(
    "an epoch does not ask who the stream is",
    "Shards come and go: then it asks the stream who it is",
    hunted=True,
    stories="another_stream_between_two_epochs another_stream_before_an_audit",
    rules="recreate audit start_epoch",
    processes=(habits.READ,),
)
def no_identity(patch: Patch) -> None:
    """Ids of shards repeat, so the new stream's are taken for the old one's."""
    patch.setattr(consumer, "check_identity", lambda *_: None)
    patch.setattr(supervisor, "check_identity", lambda *_: None)


@mutant(
    "an audit does not ask who the stream is",
    "Shards come and go: then it asks the stream who it is",
    stories="another_stream_before_an_audit",
)
def audit_without_identity(patch: Patch) -> None:
    """Shards of the new stream get rows in the old one's table."""
    real = consumer.Consumer.identify
    patch.setattr(consumer.Consumer, "identify", lambda self: self.identity or real(self))


@mutant(
    "what no sequence number vouches for is believed",
    "Shards come and go: a range that begins without one is bound only if the stream is still the table's",
    stories="another_stream_under_an_idle_shard another_stream_under_an_end",
    rules="recreate step",
    processes=(habits.READ,),
)
def first_range_of_any_stream(patch: Patch) -> None:
    """A shard that was never read has a place in every stream of that name."""
    patch.setattr(reader.ShardReader, "_same_stream", lambda _self: None)
