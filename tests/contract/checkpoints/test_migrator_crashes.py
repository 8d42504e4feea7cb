"""What the migrations in memory show of crashes holds on DynamoDB, too: one run of each kind. tests/checkpoints/migrate tries all of them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from faults import Crash
from migrating.bench import Bench
from migrating.cases import CASES
from migrating.service import QUIET, Asked, Between, ServiceBench, fault

from sluice_checkpoints.errors import LeaseHeld
from sluice_checkpoints.protocol.rows import Item

(KCL34,) = (case for case in CASES if str(case) == "KCL 3.4")  # three tables
WRITING = ("transact_write_items", "update_item")


def test_a_migration_that_is_killed_and_put_to_sleep_comes_to_what_memory_comes_to(dynamodb_api: Any) -> None:
    """Two crashes and a lost reply, then a sleep of five leases before the rows, in which another migrator comes to the end: row by row the same."""
    world, dice = ServiceBench(dynamodb_api, KCL34), Random("KCL 3.4")  # noqa: S311 - a schedule is no secret
    before = world.sources()
    for kind in ("crash before", "crash after"):
        crashing = Between(Between(dynamodb_api, fault("lost", dice.randrange(8))), fault(kind, dice.randrange(8, 20)))
        with pytest.raises(Crash):
            world.run(crashing)
    after = slept_through(world)
    assert world.end_state() == undisturbed(world)
    assert (world.target(), world.sources()) == (after, before)


def slept_through(world: ServiceBench) -> dict[str, Item]:
    """The target as another migrator left it, before the write of the one that slept was sent, and was refused."""
    after: dict[str, Item] = {}

    def sleeping(_number: int, operation: str, asked: Asked, make: Any) -> Any:
        if operation in WRITING and not after:
            world.sleep(150)
            assert world.run().state == "COMPLETE"
            after.update(world.target())
        return make(operation, asked)

    with pytest.raises(LeaseHeld):
        world.run(Between(world.api, sleeping))
    return after


def undisturbed(world: ServiceBench) -> dict[str, Item]:
    undisturbed = Bench(world.case, target=world.request.target, quiet_seconds=QUIET)
    undisturbed.migrator().run()
    return undisturbed.end_state()
