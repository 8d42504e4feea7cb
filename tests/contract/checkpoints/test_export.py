from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from exports import Time, change, item, only, standing

from sluice_checkpoints.dynamodb.target_tables import DynamoTargetTables
from sluice_checkpoints.errors import Refused, ServiceUnavailable, SourceActive
from sluice_checkpoints.formats.detect import WRITERS
from sluice_checkpoints.formats.writer import FormatWriter, TargetTables, in_transactions, write_rows

# -- the conditions ----------------------------------------------------------------------------------------------------------------


def test_a_row_as_it_was_read_becomes_the_row_as_it_is_wanted(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    before = item(writer)
    standing(tables, writer, name, {**before, "unknown": {"S": "x"}})
    keys = {k.name for k in writer.keys}
    left = [n for n in sorted(before.keys() - keys)[::2] if "NULL" not in before[n]]
    after = {n: item(writer, which=1 if n in left else 0)[n] for n in [*keys, *left]}
    assert tables.write(name, [change(writer, before, after)]) == {}
    assert only(tables, name) == after | {"unknown": {"S": "x"}}


def test_every_known_attribute_is_part_of_the_condition(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    keys = {k.name for k in writer.keys}
    before = item(writer)
    standing(tables, writer, name, before)
    for attribute in sorted(writer.types.keys() - keys):
        absent = {n: tagged for n, tagged in before.items() if n != attribute}
        for read in (absent, {**before, attribute: item(writer, which=1)[attribute]}):
            assert list(tables.write(name, [change(writer, read, item(writer, which=1))])) == [0], attribute
    refused = tables.write(name, [change(writer, item(writer, which=1), before)])
    assert {n: {t: sorted(v) if t == "SS" else v for t, v in tagged.items()} for n, tagged in (refused[0] or {}).items()} == before
    assert only(tables, name) == before


def test_a_new_row_is_refused_where_there_is_one(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    standing(tables, writer, name, item(writer))
    assert list(tables.write(name, [change(writer, None, item(writer, which=1))])) == [0]
    assert only(tables, name) == item(writer)


def test_a_row_that_was_deleted_is_not_made_again(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    tables.create(name, writer.keys)
    assert tables.write(name, [change(writer, item(writer), item(writer, which=1))]) == {0: None}
    bare = {k.name: {"S": "a"} for k in writer.keys}
    assert tables.write(name, [change(writer, bare, item(writer, which=1))]) == {0: None}
    assert list(tables.scan(name)) == []


def test_null_is_a_value(tables: TargetTables, name: str) -> None:
    """Kinsumer writes NULL where it has nothing to say: it is neither absence nor a text."""
    writer = WRITERS["kinsumer"]
    row: dict[str, Any] = {"Shard": {"S": "a"}, "SequenceNumber": {"NULL": True}}
    standing(tables, writer, name, row)
    after = row | {"SequenceNumber": {"S": "1"}}
    assert list(tables.write(name, [change(writer, {"Shard": {"S": "a"}}, after)])) == [0]
    assert tables.write(name, [change(writer, row, after)]) == {}


def test_one_refusal_stops_the_whole_transaction(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    standing(tables, writer, name, item(writer))
    changes = [change(writer, None, item(writer, key)) for key in ("b", "a", "c")]
    assert list(tables.write(name, changes)) == [1]
    assert only(tables, name) == item(writer)


def test_a_row_that_moved_ends_the_export_and_one_that_is_as_wanted_does_not(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    """`write_rows` tells a lost reply from a worker."""
    standing(tables, writer, name, item(writer))
    done = [change(writer, None, item(writer)), change(writer, None, item(writer, "b"))]
    write_rows(tables, name, done)
    write_rows(tables, name, done)
    assert len(list(tables.scan(name))) == 2
    third = {n: tagged for n, tagged in item(writer).items() if n in {k.name for k in writer.keys}}
    with pytest.raises(SourceActive, match="a moved after it was read"):
        write_rows(tables, name, [change(writer, third, item(writer, which=1)), change(writer, None, item(writer, "c"))])
    assert len(list(tables.scan(name))) == 2


def test_a_hundred_rows_fit_into_one_transaction(tables: TargetTables, writer: FormatWriter, name: str) -> None:
    tables.create(name, writer.keys)
    rows = [item(writer, f"k{i:03d}") for i in range(100)]
    assert tables.write(name, [change(writer, None, row) for row in rows]) == {}
    after = [item(writer, f"k{i:03d}", which=1) for i in range(100)]
    wanted = [{n: tagged for n, tagged in row.items() if "NULL" not in tagged} for row in after]
    assert tables.write(name, [change(writer, b, a) for b, a in zip(rows, wanted, strict=True)]) == {}
    assert len(list(tables.scan(name))) == 100


# -- the service -------------------------------------------------------------------------------------------------------------------


def test_a_table_is_made_with_the_formats_key_on_demand_and_protected(dynamodb_api: Any, writer: FormatWriter, name: str) -> None:
    tables = DynamoTargetTables(dynamodb_api, Time().patience())
    assert tables.key_schema(name) is None
    tables.create(name, writer.keys)
    said = dynamodb_api.describe_table(TableName=name)["Table"]
    assert said["DeletionProtectionEnabled"]
    assert said["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert tables.key_schema(name) == writer.keys
    tables.create(name, writer.keys)


def test_a_table_of_another_key_is_refused(tables: TargetTables, name: str) -> None:
    tables.create(name, WRITERS["kcl"].keys)
    with pytest.raises(Refused, match="key"):
        tables.create(name, WRITERS["nifi"].keys)


def test_a_lost_reply_is_asked_for_again(dynamodb_api: Any, loses_replies: Any, writer: FormatWriter, name: str) -> None:
    api = loses_replies(dynamodb_api, "transact_write_items", lambda: ReadTimeoutError(endpoint_url="x"))
    tables = DynamoTargetTables(api, Time().patience())
    tables.create(name, writer.keys)
    assert tables.write(name, [change(writer, None, item(writer))]) == {}
    assert api.left == 0


class Answers:
    def __init__(self, api: Any, operation: str, code: str) -> None:
        self._api, self._operation, self._code = api, operation, code

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def fail(**_request: Any) -> Any:
            said = {"Error": {"Code": self._code, "Message": "said the service"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise ClientError(said, operation)

        return fail if operation == self._operation else getattr(self._api, operation)


@pytest.mark.parametrize(("code", "error"), [("AccessDeniedException", Refused), ("ThrottlingException", ServiceUnavailable)])
def test_no_answer_and_no_access_are_told_apart(dynamodb_api: Any, writer: FormatWriter, name: str, code: str, error: type[Exception]) -> None:
    DynamoTargetTables(dynamodb_api, Time().patience()).create(name, writer.keys)
    tables = DynamoTargetTables(Answers(dynamodb_api, "transact_write_items", code), Time().patience())
    with pytest.raises(error):
        tables.write(name, [change(writer, None, item(writer))])


def test_rows_with_an_applications_state_are_written_in_dynamodb(dynamodb_api: Any, name: str) -> None:
    """A hundred leases of KCL with 45 kB each are more than one transaction takes."""
    tables, writer = DynamoTargetTables(dynamodb_api, Time().patience()), WRITERS["kcl"]
    tables.create(name, writer.keys)
    before = [{**item(writer, f"{i:03}"), "pendingCheckpointState": {"B": bytes(45_000)}} for i in range(100)]
    for row in before:
        dynamodb_api.put_item(TableName=name, Item=row)
    after = [{n: tagged for n, tagged in row.items() if not n.startswith("pending")} for row in before]
    for changes in in_transactions([change(writer, *pair) for pair in zip(before, after, strict=True)]):
        write_rows(tables, name, changes)
    assert {n for row in tables.scan(name) for n in row} == after[0].keys()
