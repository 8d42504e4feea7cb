"""The schedules of tests/checkpoints/migrating, sampled, with the real adapters and DynamoDB: what the in-memory fake shows has to hold there too."""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest
from migrating.bench import Bench, Crash
from migrating.cases import CASES
from migrating.service import QUIET, Asked, Between, ServiceBench, fault
from migrating.stage import Case

from sluice_checkpoints.errors import LeaseHeld
from sluice_checkpoints.protocol.rows import Item

SAMPLES = 50 if os.environ.get("SLUICE_SIM") == "deep" else 2
WRITING = ("transact_write_items", "update_item")
WRITES = 5  # the claim, a heartbeat, the start of the copy, the rows, the end
SHORTEST = 22  # calls of the run that makes the fewest, up to the end of its copy
every_source = pytest.mark.parametrize("case", CASES, ids=str)


def of_the_twin(world: ServiceBench) -> dict[str, Item]:
    """What an undisturbed migration of the same source comes to in memory."""
    twin = Bench(world.case, target=world.request.target, quiet_seconds=QUIET)
    twin.migrator().run()
    return twin.end_state()


@every_source
def test_an_undisturbed_migration_comes_to_what_the_twin_comes_to(dynamodb_api: Any, case: Case) -> None:
    """Row by row, and the source is as it was."""
    world = ServiceBench(dynamodb_api, case)
    before = world.sources()
    assert world.run().state == "COMPLETE"
    assert world.end_state() == of_the_twin(world)
    assert world.sources() == before


@every_source
@pytest.mark.parametrize("seed", range(SAMPLES))
def test_two_crashes_at_any_api_calls_lead_to_the_same_end(dynamodb_api: Any, case: Case, seed: int) -> None:
    """Before a call or after it; in each run a reply is lost on the way, too, and asked for again."""
    world, dice = ServiceBench(dynamodb_api, case), Random(f"{case} {seed}")  # noqa: S311 - a schedule is no secret
    before = world.sources()
    for _ in range(2):
        losing = Between(dynamodb_api, fault("lost", dice.randrange(SHORTEST)))
        crashing = Between(losing, fault(dice.choice(["crash before", "crash after"]), at := dice.randrange(SHORTEST)))
        with pytest.raises(Crash):
            world.run(crashing)
        assert len(crashing.log) > at
    assert world.run().state == "COMPLETE"
    assert world.end_state() == of_the_twin(world)
    assert world.sources() == before


@every_source
def test_a_migrator_that_sleeps_before_any_write_changes_nothing_after_another_took_over(dynamodb_api: Any, case: Case) -> None:
    """Five leases pass, the source moves, and another migrator comes to the end; then the write that was under way is sent."""
    world, dice = ServiceBench(dynamodb_api, case), Random(str(case))  # noqa: S311 - a schedule is no secret
    sleepy = dice.randrange(WRITES)
    after: dict[str, Item] = {}

    def sleeping(_number: int, operation: str, asked: Asked, make: Any) -> Any:
        if not after and operation in WRITING and _writes(between) == sleepy + 1:
            world.sleep(150)
            world.move()
            assert world.run().state == "COMPLETE"
            after.update(world.target())
        return make(operation, asked)

    between = Between(dynamodb_api, sleeping)
    with pytest.raises(LeaseHeld):
        world.run(between)
    assert world.target() == after


def _writes(between: Between) -> int:
    return sum(operation in WRITING for operation, _ in between.log)
