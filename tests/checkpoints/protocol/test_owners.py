from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sluice_checkpoints.errors import LeaseHeld, Refused, ServiceUnavailable
from sluice_checkpoints.protocol import copies
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, hand_over, take_over
from sluice_checkpoints.protocol.owners import NOBODY, Owner, check
from sluice_checkpoints.protocol.rows import CONSUMER, ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Put
from sluice_lab.fakes.table import MemoryTable

OURS = Owner("shop/orders", ("c1",))
OTHER = Owner("test/orders", ("c1",))
UNKNOWN = Owner("shop/orders")  # an operator that may not read the cluster's identity
BY_HAND = Owner("shop/orders", ("c1",), writes=False)
NAMED = Owner("shop/orders", ("prod", "c1"))
FREE = ConsumerRow("id-1", "arn:orders", 5, generation=4, token="t4", counter=9, lease_millis=20_000, committed=7, released=True)
OWNED = replace(FREE, owner="shop/orders", cluster="c1")
BOTH = replace(OWNED, cluster="prod c1")
WORKING = replace(OWNED, released=False)


def stored(row: ConsumerRow) -> CheckpointStore:
    table = MemoryTable("orders-table")
    table.write(Put(row.to_item(), ()))
    return CheckpointStore(table)


def consumer(store: CheckpointStore) -> ConsumerRow:
    row = store.consumer()
    assert row is not None
    return row


class Waits:
    def __init__(self, visit: Callable[[], object] = lambda: None) -> None:
        self.now, self._visit = 0.0, visit

    def watcher(self) -> Watcher:
        return Watcher(lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._visit()


def claim(owner: Owner | None, **more: Any) -> LeaseRequest:
    return LeaseRequest(5000, "pod-2", "now", owner=owner, **more)


def taken(row: ConsumerRow, owner: Owner | None) -> tuple[str | None, str | None]:
    """Owner and cluster of the row once a driver of this owner has the lease; in the table and in the driver's hands."""
    store = stored(row)
    lease = take_over(store, claim(owner), Waits().watcher())
    assert (lease.row.owner, lease.row.cluster) == (consumer(store).owner, consumer(store).cluster)
    return consumer(store).owner, consumer(store).cluster


@pytest.mark.parametrize(
    ("row", "owner", "left"),
    [
        pytest.param(FREE, OURS, ("shop/orders", "c1"), id="nobody owns it yet"),
        pytest.param(FREE, UNKNOWN, ("shop/orders", None), id="nobody owns it yet, and the cluster is not known"),
        pytest.param(FREE, NOBODY, (None, None), id="a run outside of Kubernetes"),
        pytest.param(FREE, BY_HAND, (None, None), id="a run outside of Kubernetes, as the owner of another table"),
        pytest.param(OWNED, BY_HAND, ("shop/orders", "c1"), id="a run outside of Kubernetes, as the owner"),
        pytest.param(OWNED, OURS, ("shop/orders", "c1"), id="the same resource, however often it was made again"),
        pytest.param(OWNED, UNKNOWN, ("shop/orders", "c1"), id="the driver does not know its cluster"),
        pytest.param(replace(OWNED, cluster=None), OURS, ("shop/orders", "c1"), id="the cluster becomes known"),
        pytest.param(OWNED, NAMED, ("shop/orders", "prod c1"), id="the cluster gets a name"),
        pytest.param(BOTH, Owner("shop/orders", ("prod", "c9")), ("shop/orders", "prod c9"), id="it is rebuilt with its name"),
        pytest.param(BOTH, Owner("shop/orders", ("prod-eu", "c1")), ("shop/orders", "prod-eu c1"), id="its name is changed"),
        pytest.param(BOTH, OURS, ("shop/orders", "c1"), id="its name is taken away, or a release without one goes on"),
        pytest.param(OWNED, Owner("shop/orders", ("c1", "c9")), ("shop/orders", "c1 c9"), id="the former cluster's uid is the name of the new one"),
        pytest.param(OWNED, None, ("shop/orders", "c1"), id="an export, by a person"),
    ],
)
def test_who_may_take_the_lease_and_what_the_row_names_then(row: ConsumerRow, owner: Owner | None, left: tuple[str | None, str | None]) -> None:
    """The rule of docs/protocol.md, "The owner"."""
    assert taken(row, owner) == left


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(OTHER, id="another resource"),
        pytest.param(Owner("shop/orders", ("c2",)), id="the same name in another cluster"),
        pytest.param(Owner("shop/orders", ("prod", "c2")), id="the same name in another cluster with a name"),
        pytest.param(Owner("test/orders"), id="another resource, whose cluster is not known"),
        pytest.param(NOBODY, id="a run outside of Kubernetes"),
    ],
)
@pytest.mark.parametrize("row", [OWNED, WORKING], ids=["free", "held"])
def test_a_driver_of_another_owner_is_refused_at_once_and_changes_nothing(row: ConsumerRow, owner: Owner, *, force: bool) -> None:
    """It does not wait for the lease: a free one would be taken, and a held one would say LeaseHeld for ever."""
    store, time = stored(row), Waits()
    with pytest.raises(Refused) as refused:
        take_over(store, claim(owner, force=force), time.watcher())
    assert refused.value.exit_code == 65
    assert (time.now, consumer(store)) == (0, row)


def test_the_refusal_names_both_owners_and_the_command() -> None:
    with pytest.raises(Refused) as refused:
        check("orders-table", OWNED, OTHER)
    assert str(refused.value) == (
        "checkpoints.table: orders-table belongs to shop/orders (cluster c1), and this driver to test/orders (cluster c1). Two owners would take "
        "turns, and each would miss the records that the other got. Name another table. Or stop shop/orders, and hand the table over: "
        "sluice adopt --table orders-table --region REGION --owner test/orders --cluster c1"
    )


def test_a_run_without_an_owner_is_told_how_to_run_as_the_owner() -> None:
    """A person who repairs something by hand need not hand the table over, and back."""
    with pytest.raises(Refused, match=r"this run names no owner\..*stop shop/orders, and run as it: SLUICE_OWNER=shop/orders SLUICE_CLUSTER=c1$"):
        check("orders-table", OWNED, NOBODY)


def test_a_driver_is_refused_when_the_table_is_handed_over_while_it_watches() -> None:
    store = stored(WORKING)

    def visit() -> None:
        store.table.rows[CONSUMER]["owner"] = "test/orders"  # type: ignore[attr-defined]  # the in-memory fake's

    with pytest.raises(Refused, match="belongs to test/orders"):
        take_over(store, claim(OURS), Waits(visit).watcher())


# -- handing over ------------------------------------------------------------------------------------------------------------------


def test_a_table_that_is_handed_over_keeps_its_consumer_and_is_free() -> None:
    """The sink knows the open batch by the consumer's id; the new owner's driver need not wait."""
    store, time = stored(OWNED), Waits()
    row = hand_over(store, claim(OTHER), time.watcher())
    now = consumer(store)
    assert (row.owner, now.owner, now.cluster, now.consumer_id, now.committed, now.released) == ("test/orders", "test/orders", "c1", "id-1", 7, True)
    assert time.now == 0
    take_over(store, claim(OTHER), time.watcher())
    with pytest.raises(Refused, match="belongs to test/orders"):
        take_over(store, claim(OURS), time.watcher())


def test_a_handover_to_an_owner_of_no_known_cluster_leaves_no_cluster() -> None:
    """The row's cluster was the former owner's."""
    store = stored(OWNED)
    hand_over(store, claim(Owner("test/orders")), Waits().watcher())
    assert (consumer(store).owner, consumer(store).cluster) == ("test/orders", None)


def test_a_handover_to_the_same_owner_without_a_cluster_forgets_the_cluster() -> None:
    """A person says so, whose cluster was built again."""
    store = stored(OWNED)
    hand_over(store, claim(UNKNOWN), Waits().watcher())
    assert (consumer(store).owner, consumer(store).cluster) == ("shop/orders", None)
    assert taken(consumer(store), Owner("shop/orders", ("c2",))) == ("shop/orders", "c2")


def test_a_table_on_which_a_driver_works_is_not_handed_over() -> None:
    store = stored(WORKING)
    with pytest.raises(LeaseHeld):
        hand_over(store, claim(OTHER), Waits(lambda: store.beat(Epoch(4, "t4"))).watcher())
    assert consumer(store).owner == "shop/orders"


def test_a_lost_drivers_lease_is_waited_out_before_a_handover() -> None:
    store, time = stored(WORKING), Waits()
    hand_over(store, claim(OTHER), time.watcher())
    assert time.now == pytest.approx(21)


def test_a_handover_whose_release_has_no_answer_is_one() -> None:
    store = stored(OWNED)

    def hook(when: str, _operation: str, write: Any) -> None:
        if when == "before" and getattr(write, "put", {}).get(("released",)):
            raise ServiceUnavailable("no answer")

    store.table.hook = hook  # type: ignore[attr-defined]  # the in-memory fake's
    assert hand_over(store, claim(OTHER), Waits().watcher()).owner == "test/orders"
    assert (consumer(store).owner, consumer(store).released) == ("test/orders", False)


def test_an_exported_table_is_not_handed_over() -> None:
    with pytest.raises(Refused, match="EXPORTED"):
        hand_over(stored(replace(OWNED, state="EXPORTED")), claim(OTHER), Waits().watcher())


# -- copies ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("owner", "left"), [(NOBODY, (None, None)), (OTHER, ("test/orders", "c1"))])
def test_an_adopted_copy_has_the_owner_that_is_given_or_none(owner: Owner, left: tuple[str | None, str | None]) -> None:
    store = stored(replace(OWNED, table_id="t@1"))
    _, row = copies.adopt(store, "t@2", lambda: "id-2", owner)
    assert (row.owner, row.cluster) == left
    take_over(store, claim(owner), Waits().watcher())


def test_a_copy_whose_owner_changed_meanwhile_is_not_adopted() -> None:
    store = stored(replace(OWNED, table_id="t@1"))

    def token() -> str:
        store.table.rows[CONSUMER]["owner"] = "test/orders"  # type: ignore[attr-defined]  # the in-memory fake's
        return "id-2"

    with pytest.raises(LeaseHeld, match="row consumer"):
        copies.adopt(store, "t@2", token)
    assert consumer(store).consumer_id == "id-1"


# -- other versions ----------------------------------------------------------------------------------------------------------------


def test_what_an_older_version_writes_keeps_the_owner() -> None:
    """It knows neither attribute: no write replaces the row. After a downgrade and an upgrade the owner is the same."""
    store = stored(OWNED)
    lease = take_over(store, claim(None), Waits().watcher())
    assert store.beat(lease.epoch, 9000)
    store.commit(lease.epoch, 8)
    assert store.release(lease.epoch)
    with pytest.raises(Refused, match="belongs to shop/orders"):
        take_over(store, claim(OTHER), Waits().watcher())
