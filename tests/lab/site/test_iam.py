"""The policies of docs/start allow the calls that the code makes, and no others.

Here the code is read. The programs of the migration pages are run with them: tests/contract/checkpoints/test_migrate_pages.py.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import boto3
import pytest

from sluice_checkpoints.aws import denials
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.dynamodb.create import TableSettings

ROOT = Path(__file__).parents[3]
CONSUMER = ROOT / "consumer"
START = ROOT / "docs" / "start"
OPERATIONS = {
    name: frozenset(boto3.client(name, region_name="eu-west-1").meta.service_model.operation_names) for name in ("dynamodb", "kinesis", "sts")
}
SNAKE = {re.sub(r"(?<=.)(?=[A-Z])", "_", name).lower(): name for names in OPERATIONS.values() for name in names}
MEMBERS = {"PutItem", "UpdateItem", "ConditionCheckItem"}  # rights of a transaction, by its members (IAM has none for TransactWriteItems)
TABLE = ("sluice_checkpoints/dynamodb/table.py", "sluice_checkpoints/dynamodb/http.py")
MAKING = ("sluice_checkpoints/dynamodb/create.py",)
SOURCE = ("sluice_checkpoints/dynamodb/source_tables.py",)
CATALOG = ("sluice_checkpoints/stream/catalog.py",)
DIAGNOSIS = ("sluice_checkpoints/diagnose/oldest_records.py",)
TARGET = ("sluice_checkpoints/dynamodb/target_tables.py",)
FIRST = ("sluice_checkpoints/stream/first_records.py",)
ROLE = ("sluice_checkpoints/aws/role_sessions.py",)
READING = ("sluice_consumer/kinesis/http.py", "sluice_consumer/checks/stream.py")


def tree(name: str) -> ast.Module:
    return ast.parse((CONSUMER / name).read_text())


def called(service: str, *nodes: ast.AST) -> set[str]:
    found = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Attribute):
            found.add(SNAKE.get(node.attr, ""))
    operations = found & OPERATIONS[service]
    return (operations - {"TransactWriteItems"} | MEMBERS) if "TransactWriteItems" in operations else operations


def of(service: str, *modules: str) -> set[str]:
    return {f"{service}:{name}" for name in called(service, *map(tree, modules))}


def methods(*modules: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for module in modules for node in ast.walk(tree(module)) if isinstance(node, ast.FunctionDef)}


def asked(nodes: Iterable[ast.AST], of_what: str) -> set[str]:
    taken = [node for outer in nodes for node in ast.walk(outer) if isinstance(node, ast.Attribute)]
    return {each.attr for each in taken if ast.unparse(each.value) == of_what}


def closed(names: set[str], known: dict[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    while more := asked([known[name] for name in names if name in known], "self") - names:
        names |= more
    return [known[name] for name in names if name in known]


def of_tasks() -> set[str]:
    """What tasks ask of the table: their calls of the store, its calls of the table, the table's calls of DynamoDB."""
    tasks = [ast.parse(path.read_text()) for path in sorted((CONSUMER / "sluice_consumer" / "shards").glob("*.py"))]
    tasks.append(tree("sluice_consumer/spark/batch_reader.py"))
    return of_store(asked(tasks, "store"))


def of_export() -> set[str]:
    exporter = tree("sluice_checkpoints/export/exporter.py")
    names = asked([tree("sluice_checkpoints/protocol/lease.py")], "store")
    for store in ("world.store", "self._ports.store", "self._store"):
        names |= asked([exporter], store)
    return of_store(names) | {"dynamodb:DescribeTable"}


def of_store(names: set[str]) -> set[str]:
    steps = closed(names, methods("sluice_checkpoints/protocol/store.py", "sluice_checkpoints/protocol/batch_writes.py"))
    table = closed(asked(steps, "self.table"), methods(TABLE[0]))
    found = {f"dynamodb:{name}" for name in called("dynamodb", *table)}
    writes = {ast.unparse(node.func) for step in steps for node in ast.walk(step) if isinstance(node, ast.Call)}
    return found - {right for kind, right in {"Put": "dynamodb:PutItem", "Update": "dynamodb:UpdateItem"}.items() if kind not in writes}


def deleting(package: str) -> set[str]:
    """The right to delete rows, if a package calls the one step that does (a member of a transaction, so no operation is named)."""
    calls = {node.func for path in (CONSUMER / package).rglob("*.py") for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)}
    return {"dynamodb:DeleteItem"} if "folding.delete" in map(ast.unparse, calls) else set()


# DynamoDB guide, "Encryption at rest: usage notes", key policy for a customer managed key: the minimum. No call of ours names them.
TABLE_KEY = {f"kms:{name}" for name in ("CreateGrant", "Decrypt", "DescribeKey", "Encrypt", "GenerateDataKey*", "ReEncrypt*")}
OPTIONS = {"Tags": {"dynamodb:TagResource"}, "SSESpecification": TABLE_KEY}  # by the part of CreateTable that needs them
OWN = of("dynamodb", *TABLE, *MAKING)
STREAM = of("kinesis", *CATALOG, *READING, *FIRST)
WANTED = {
    "driver": {"CheckpointTable": OWN | deleting("sluice_consumer"), "Stream": STREAM, "SourceTable": of("dynamodb", *SOURCE)},
    "executor": {"CheckpointTable": of_tasks(), "Stream": STREAM},
    "migration": {
        "CheckpointTable": OWN | deleting("sluice_checkpoints/migrate"),
        "Stream": of("kinesis", *CATALOG, *DIAGNOSIS),
        "SourceTable": of("dynamodb", *SOURCE),
    },
    "export": {
        "CheckpointTable": of_export(),
        "Stream": of("kinesis", *CATALOG, *FIRST),
        "TargetTable": of("dynamodb", *TARGET, *MAKING, *SOURCE) - {"dynamodb:ConditionCheckItem"},  # its transactions put and update
    },
    "stream": {"Stream": of("kinesis", *CATALOG, *READING, *DIAGNOSIS, *FIRST)},
    "table-options": {"Tags": OPTIONS["Tags"], "TableKey": OPTIONS["SSESpecification"]},
    "stream-key": {"StreamKey": set(denials.DECRYPTING)},
    "assume": {"Role": of("sts", *ROLE) | {"sts:TagSession"}},  # tags of sessions of EKS Pod Identity come with the call
}


@pytest.mark.parametrize("role", WANTED)
def test_a_policy_allows_the_calls_that_the_code_makes_and_no_others(role: str) -> None:
    document = json.loads((START / f"iam-{role}.json").read_text())
    assert {each["Sid"]: set(each["Action"]) for each in document["Statement"]} == WANTED[role]
    assert all(each["Effect"] == "Allow" and each["Resource"] != "*" for each in document["Statement"])


def test_each_option_of_a_table_that_sluice_makes_has_its_statement() -> None:
    """A further part of CreateTable may need a further right."""
    assert TableSettings({"team": "shop"}, "arn:aws:kms:eu-west-1:111122223333:key/1").request.keys() == OPTIONS.keys()
    by_sid = {each["Sid"]: each for each in json.loads((START / "iam-table-options.json").read_text())["Statement"]}
    driver = {each["Sid"]: each for each in json.loads((START / "iam-driver.json").read_text())["Statement"]}
    assert by_sid["Tags"]["Resource"] == driver["CheckpointTable"]["Resource"]


def test_the_key_of_the_stream_is_used_for_that_stream_only() -> None:
    """Kinesis names the stream in each call to KMS (its guide, "Permissions to use user-generated KMS keys")."""
    (stream,) = json.loads((START / "iam-stream.json").read_text())["Statement"]
    (key,) = json.loads((START / "iam-stream-key.json").read_text())["Statement"]
    assert key["Condition"] == {"StringEquals": {"kms:EncryptionContext:aws:kinesis:arn": stream["Resource"]}}


def test_the_calls_of_tasks_are_found() -> None:
    """Else the comparison above would be of nothing: a bind is a conditional UpdateItem, rows are read together."""
    assert {"dynamodb:UpdateItem", "dynamodb:BatchGetItem"} <= of_tasks()
    assert "kinesis:GetRecords" in STREAM


def test_one_module_makes_deletes() -> None:
    """Else the right above would be compared with the wrong calls."""
    made = [path.name for path in sorted(CONSUMER.rglob("*.py")) if re.search(r"\bDelete\(", path.read_text())]
    assert made == ["table.py", "folding.py"]
    assert deleting("sluice_consumer") == {"dynamodb:DeleteItem"}


def test_nothing_else_of_the_consumer_names_a_call() -> None:
    """A module that begins to call Kinesis or DynamoDB has to be among those that are compared, or be no part of these roles."""
    elsewhere = {
        "sluice_consumer/letters/services.py",  # dead letters: docs/dead-letters.md has their rights
        "sluice_consumer/checks/table.py",
    }
    known = {*TABLE, *MAKING, *SOURCE, *CATALOG, *READING, *DIAGNOSIS, *TARGET, *FIRST, *elsewhere}
    named = set()
    for path in sorted(CONSUMER.glob("sluice_*/**/*.py")):
        name = str(path.relative_to(CONSUMER))
        if {"memory", "memory.py", "dev", "testing"}.isdisjoint(path.relative_to(CONSUMER).parts):
            texts = {node.value for node in ast.walk(tree(name)) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
            if texts & (OPERATIONS["dynamodb"] | OPERATIONS["kinesis"]):
                named.add(name)
    assert named <= known
    assert of("dynamodb", "sluice_consumer/checks/table.py") <= OWN


def test_the_statements_of_refusals_are_those_of_the_policies() -> None:
    assert set(denials.READING) == WANTED["stream"]["Stream"]
    assert set(denials.ASSUMING) == WANTED["assume"]["Role"] == {"sts:AssumeRole", "sts:TagSession"}


def test_the_role_that_reads_the_stream_trusts_the_roles_of_the_pods_and_they_may_assume_it() -> None:
    page = (START / "eks.md").read_text()
    trust, tags = json.loads((START / "iam-trust-stream.json").read_text())["Statement"]
    (own,) = json.loads((START / "iam-assume.json").read_text())["Statement"]
    assert [arn.rpartition("/")[2] for arn in trust["Principal"]["AWS"]] == ["sluice-driver", "sluice-executor"]
    assert tags["Principal"] == trust["Principal"]
    assert [*trust["Action"], *tags["Action"]] == own["Action"]
    assert f"roleArn: {own['Resource']}\n" in page
    assert f"externalId: {trust['Condition']['StringEquals']['sts:ExternalId']}\n" in page
    (stream,) = json.loads((START / "iam-stream.json").read_text())["Statement"]
    assert f"arn: {stream['Resource']}\n" in page


# IAM guide, "Pass session tags in AWS STS"; a global key is there for every action
OF_TAGS = {"aws:PrincipalTag", "aws:RequestTag", "aws:ResourceTag", "aws:TagKeys", "sts:TransitiveTagKeys", "aws:PrincipalArn"}


def asked_of_tags(statements: Iterable[dict[str, Any]]) -> set[str]:
    conditions = [statement.get("Condition", {}) for statement in statements if "sts:TagSession" in statement["Action"]]
    return {key.partition("/")[0] for condition in conditions for keys in condition.values() for key in keys}


def test_a_condition_is_asked_of_no_action_that_lacks_its_key() -> None:
    """Such a statement allows nothing: a session of Pod Identity hands on its tags, and could not assume the role. Files and messages alike."""
    files = [json.loads(path.read_text())["Statement"] for path in START.glob("iam-*.json")]
    said = denials.of_role(AssumedRole("arn:aws:iam::444455556666:role/orders-reader", "shop-orders"), "denied")
    decoder = json.JSONDecoder()
    told = [decoder.raw_decode(said, found.start())[0] for found in re.finditer(r'\{"Effect"', said)]
    assert told
    assert asked_of_tags([*(statement for file in files for statement in file), *told]) <= OF_TAGS
