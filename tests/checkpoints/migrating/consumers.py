"""Consumers that work on, or come back, while their table is migrated (see `schedules`)."""

from __future__ import annotations

from migrating.bench import Bench, Calls
from migrating.schedules import attempt, bench, is_over, log_of, moves_in, run_length
from migrating.stage import Case

from sluice_checkpoints.errors import SourceActive
from sluice_checkpoints.protocol.rows import CONSUMER, MIGRATION, ConsumerRow


def a_checkpoint_at_any_call(case: Case) -> int:
    """Of a consumer that was thought to be stopped: the migration is refused (75), or the checkpoint is in the target.

    Up to the last look at the table in which the row stands; what is written later only the driver's own look can see.
    """
    log, copied_again = log_of(case), 0
    made, last_row_written = len(log), [i for i, line in enumerate(log) if line == "after transact"][-2]
    for at in range(made):
        world, calls = bench(case), Calls()

        def visit(number: int, world: Bench = world, at: int = at) -> None:
            if number == at:
                world.move()

        calls.visit = visit
        ended = attempt(world, calls)
        if ended is not None:
            assert ended is SourceActive, f"refused_or_copied: ended with {ended}"
            assert CONSUMER not in world.table.rows, "gate"
        elif at <= max(calls.last("scan source", moves_in(case)), last_row_written):
            assert world.places() == world.due(), f"refused_or_copied: the checkpoint at call {at} of {calls.log} is lost"
            copied_again += calls.made > made
    assert copied_again, "refused_or_copied: no run copied again"
    return made


def a_consumer_that_lives(case: Case, every: float = 5.0) -> int:
    """It has nothing to read and writes only its heartbeat: the migration is always refused, and nothing of the plan is written."""
    world = bench(case)
    calls, due = Calls(), every

    def visit(_number: int) -> None:
        nonlocal due
        if world.seconds >= due:
            due += every
            world.beat()

    calls.visit = visit
    ended = attempt(world, calls)
    assert ended is SourceActive, f"at_rest: ended with {ended}"
    assert not world.places(), "at_rest: rows were written"
    assert world.table.rows[MIGRATION]["released"], "an orderly exit gives the claim back"
    return 1


def a_source_that_moved_between_two_tries(case: Case) -> int:
    """A run dies at any call, the consumer works on for a while, and the next run copies what holds then."""
    made = run_length(case)
    for at in range(made - 1):
        world = bench(case)
        attempt(world, Calls(crash_at=at))
        if not is_over(world):
            world.move()
        assert attempt(world, Calls()) is None, "same_end"
        assert world.places() == world.due(), "same_end: the present plan counts"
        assert ConsumerRow.from_item(world.table.rows[CONSUMER]).committed == 0
    return 2 * made


# -- a source's own migration ------------------------------------------------------------------------------------------------------


def nifi_goes_on(case: Case) -> int:
    """NiFi starts again at any call and ends its own migration: makes the main table again, copies the half-made one back and deletes that.

    The migration is refused (75), or what comes out is what the tables say in the end.
    """
    log, refused = log_of(case), 0
    last_row_written = [i for i, line in enumerate(log) if line == "after transact"][-2]
    for at in range(log.index("before scan source"), len(log)):
        world, calls = bench(case), Calls()

        def visit(number: int, world: Bench = world, at: int = at) -> None:
            if number == at:
                _rename(world)

        calls.visit = visit
        ended = attempt(world, calls)
        refused += ended is SourceActive
        if ended is None and at <= last_row_written:
            assert world.places() == world.due(), f"refused_or_copied: NiFi's migration at call {at} was overlooked"
        assert ended in {None, SourceActive}, f"refused_or_copied: ended with {ended}"
    assert refused
    return len(log)


def _rename(world: Bench) -> None:
    tables, main = world.sources.tables, world.case.table
    (half,) = (name for name in tables if name.endswith("_migration"))
    keys, copies = tables.pop(half)
    places = [row for row in copies if "sequenceNumber" in row]
    known = {row["shardId"]["S"] for row in places}
    others = [row for row in tables.get(main, (keys, []))[1] if row["shardId"]["S"] not in known]
    tables[main] = (keys, others + places)
