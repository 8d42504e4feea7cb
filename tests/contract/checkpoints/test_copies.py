"""Copies of a checkpoint table in a real DynamoDB: which table a name means, and the command line that adopts one."""

from __future__ import annotations

import json
import shlex
import threading
import uuid
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol import copies
from sluice_checkpoints.protocol.lease import LeaseRequest, Watcher, take_over
from sluice_checkpoints.protocol.owners import Owner
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore, Epoch
from sluice_checkpoints.protocol.table import Update

REGION = "us-east-1"
pytestmark = pytest.mark.usefixtures("credentials")


class Service:
    def __init__(self, endpoint: str) -> None:
        self.endpoint, self.api = endpoint, client(Endpoint(REGION, endpoint))
        self.targets = DynamoTargets(self.api)

    def table(self) -> CheckpointStore:
        return CheckpointStore(self.targets.ensure(f"t-{uuid.uuid4()}").table)

    def copy(self, original: CheckpointStore) -> CheckpointStore:
        copy = self.table()
        for item in original.table.scan():
            copy.put_new(item)
        return copy

    def identity(self, store: CheckpointStore) -> str:
        found = self.targets.identity(store.table.name)
        assert found is not None
        return found

    def adopt(self, name: str, *more: str) -> Result:
        return CliRunner().invoke(main, ["adopt", "--table", name, "--region", REGION, "--dynamodb-endpoint", self.endpoint, "--json", *more])

    def owned(self, **changes: Any) -> CheckpointStore:
        store = self.table()
        row = ConsumerRow("id-1", "arn:s", 1, 4, "t4", 9, 60_000, released=True, committed=7, owner="shop/orders", cluster="c1")
        store.put_new(replace(row, table_id=self.identity(store), **changes).to_item())
        return store


@pytest.fixture(params=["dynamodb_endpoint", "dynalite_endpoint"])
def service(request: pytest.FixtureRequest) -> Service:
    """DynamoDB Local, which gives tables no id, and dynalite, which does."""
    return Service(request.getfixturevalue(request.param))


def test_a_table_keeps_its_identity_and_a_copy_has_another(service: Service) -> None:
    original = service.table()
    assert service.identity(original) == service.identity(original)
    assert service.identity(original) != service.identity(service.copy(original))
    assert service.targets.identity("never-made") is None


def test_a_copy_is_refused_until_it_is_adopted(dynamodb_endpoint: str) -> None:
    service = Service(dynamodb_endpoint)
    original = service.table()
    original.put_new(ConsumerRow("id-1", "arn:s", 1, committed=7).to_item())
    row = original.consumer()
    assert row is not None
    copies.check(original, row, service.identity(original))
    copy = service.copy(original)
    row = copy.consumer()
    assert row is not None
    with pytest.raises(Refused, match="is a copy"):
        copies.check(copy, row, service.identity(copy))
    first, second = (service.adopt(copy.table.name) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    said = json.loads(first.stdout)
    assert (said["changed"], said["formerConsumerId"], said["committed"]) == (True, "id-1", 7)
    assert not json.loads(second.stdout)["changed"]
    row = copy.consumer()
    assert row is not None
    copies.check(copy, row, service.identity(copy))
    assert row.consumer_id == said["consumerId"] != "id-1"


def test_an_adoption_says_how_many_batches_come_again(service: Service) -> None:
    original = service.owned()
    copy, late = service.copy(original), service.copy(original)
    for batch in (8, 9, 10):
        original.commit(Epoch(4, "t4"), batch)
    said = json.loads(service.adopt(copy.table.name).stdout)
    assert said["batchesAgain"] == 3
    assert said["message"].endswith("under the new id: 3 batches")
    assert json.loads(service.adopt(copy.table.name).stdout)["batchesAgain"] is None
    late.table.write(Update("consumer", (), put={("tableId",): f"{service.identity(original)}-before"}))
    assert "is not known" in json.loads(service.adopt(late.table.name).stdout)["message"]


def test_a_table_is_handed_over_by_the_command_that_the_refusal_names(service: Service) -> None:
    store, other, ours = service.owned(), Owner("test/orders", ("c1",)), Owner("shop/orders", ("c1",))
    with pytest.raises(Refused) as refused:
        take_over(store, LeaseRequest(5000, "pod-2", "now", owner=other), Watcher())
    words = shlex.split(str(refused.value).partition("sluice adopt --table ")[2])
    first, second = (service.adopt(words[0], *(word for word in words[1:] if word not in {"--region", "REGION"})) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    said = json.loads(first.stdout)
    assert (said["changed"], said["owner"], said["formerOwner"], said["consumerId"]) == (True, "test/orders", "shop/orders", "id-1")
    assert not json.loads(second.stdout)["changed"]
    taken = take_over(store, LeaseRequest(5000, "pod-2", "now", owner=other), Watcher())
    assert (taken.how, taken.row.consumer_id, taken.row.committed) == ("released", "id-1", 7)
    with pytest.raises(Refused, match=f"{store.table.name} belongs to test/orders"):
        take_over(store, LeaseRequest(5000, "pod-1", "now", owner=ours), Watcher())


def test_a_table_on_which_a_driver_works_is_not_handed_over(dynamodb_endpoint: str) -> None:
    service = Service(dynamodb_endpoint)
    store = service.owned(released=False, lease_millis=1000)
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.05):
            store.beat(Epoch(4, "t4"))

    heart = threading.Thread(target=beat)
    heart.start()
    try:
        result = service.adopt(store.table.name, "--owner", "test/orders")
    finally:
        over.set()
        heart.join()
    row = store.consumer()
    assert row is not None
    assert (result.exit_code, json.loads(result.stdout)["reason"], row.owner) == (75, "LeaseHeld", "shop/orders")


def test_a_copy_is_adopted_by_the_owner_that_is_named(dynamodb_endpoint: str) -> None:
    service = Service(dynamodb_endpoint)
    for more, owner in ((("--owner", "dr/orders", "--cluster", "c9"), "dr/orders"), ((), None)):
        copy = service.copy(service.owned())
        said = json.loads(service.adopt(copy.table.name, *more).stdout)
        assert (said["changed"], said["formerOwner"], said["owner"], said["formerConsumerId"]) == (True, "shop/orders", owner, "id-1")
        row = copy.consumer()
        assert row is not None
        assert row.owner == owner


@pytest.mark.parametrize("words", [["--owner", "orders"], ["--owner", "shop/orders", "--cluster", "a b"], ["--cluster", "c1"], ["--owner", ""]])
def test_an_owner_that_no_resource_can_be_is_wrong_usage(dynamodb_endpoint: str, words: list[str]) -> None:
    assert Service(dynamodb_endpoint).adopt("never-made", *words).exit_code == 2


@pytest.mark.parametrize("made", [True, False], ids=["a table without a consumer", "no table"])
def test_what_cannot_be_adopted_is_refused_by_the_command_line(dynamodb_endpoint: str, made: bool) -> None:  # noqa: FBT001
    service = Service(dynamodb_endpoint)
    result = service.adopt(service.table().table.name if made else "never-made")
    assert (result.exit_code, json.loads(result.stdout)["reason"]) == (65, "Refused")
