"""Copies of a checkpoint table in a real DynamoDB: which table a name means, and the command line that adopts one."""

from __future__ import annotations

import json
import uuid

import pytest
from click.testing import CliRunner, Result

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.table import Endpoint, client
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.protocol import copies
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore

REGION = "us-east-1"
pytestmark = pytest.mark.usefixtures("credentials")


class Service:
    """Tables of one DynamoDB."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint, self.api = endpoint, client(Endpoint(REGION, endpoint))
        self.targets = DynamoTargets(self.api)

    def table(self) -> CheckpointStore:
        """A new table."""
        return CheckpointStore(self.targets.ensure(f"t-{uuid.uuid4()}").table)

    def copy(self, original: CheckpointStore) -> CheckpointStore:
        """Another table with the rows of one, as a restore makes it."""
        copy = self.table()
        for item in original.table.scan():
            copy.put_new(item)
        return copy

    def identity(self, store: CheckpointStore) -> str:
        """Which table it is."""
        found = self.targets.identity(store.table.name)
        assert found is not None
        return found

    def adopt(self, name: str) -> Result:
        """The command line."""
        return CliRunner().invoke(main, ["adopt", "--table", name, "--region", REGION, "--dynamodb-endpoint", self.endpoint, "--json"])


@pytest.fixture(params=["dynamodb_endpoint", "dynalite_endpoint"])
def service(request: pytest.FixtureRequest) -> Service:
    """DynamoDB Local, which gives tables no id, and dynalite, which does."""
    return Service(request.getfixturevalue(request.param))


def test_a_table_keeps_its_identity_and_a_copy_has_another(service: Service) -> None:
    """However often it is asked for; a name without a table has none."""
    original = service.table()
    assert service.identity(original) == service.identity(original)
    assert service.identity(original) != service.identity(service.copy(original))
    assert service.targets.identity("never-made") is None


def test_a_copy_is_refused_until_it_is_adopted(dynamodb_endpoint: str) -> None:
    """Twice does no harm."""
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


@pytest.mark.parametrize("made", [True, False], ids=["a table without a consumer", "no table"])
def test_what_cannot_be_adopted_is_refused_by_the_command_line(dynamodb_endpoint: str, made: bool) -> None:  # noqa: FBT001
    """Exit code 65, and a document."""
    service = Service(dynamodb_endpoint)
    result = service.adopt(service.table().table.name if made else "never-made")
    assert (result.exit_code, json.loads(result.stdout)["reason"]) == (65, "Refused")
