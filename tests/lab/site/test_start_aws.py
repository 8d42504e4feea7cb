"""The calls of `aws` on docs/start/eks.md: bash expands them as a reader's would, AWS' own models judge them, and an emulated IAM takes the roles."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import page_blocks
import pytest
from botocore import xform_name
from botocore.validate import ParamValidator
from moto import mock_aws

from sluice_lab.release import charts

PAGE = "docs/start/eks.md"
RECORDED = 'aws() { printf "%s\\n" "$PWD" "$@" ""; }; docker() { :; }\n'  # instead of the program: where it would run, and its arguments
ACCOUNT = "111122223333"  # of the page


@dataclass(frozen=True)
class Call:
    """One call, as the program would make it.

    Attributes:
        service: as botocore names it.
        operation: as the service's model names it, `CreateRepository`.
        parameters: by the names of the model; the content of a file, where one is named.
    """

    service: str
    operation: str
    parameters: dict[str, str]


def calls(first: str = "cd docs/start\n") -> list[Call]:
    script = RECORDED + page_blocks.beginning(PAGE, first)
    said = subprocess.run(["bash", "-euc", script], cwd=page_blocks.ROOT, check=True, capture_output=True, text=True).stdout
    return [call(Path(folder), *words) for folder, *words in (each.split("\n") for each in said.strip("\n").split("\n\n"))]


def call(folder: Path, service: str, command: str, *options: str) -> Call:
    """Of its arguments, by the rules of the program: an option is a member of the operation's input.

    Raises:
        KeyError: there is no such operation, or it has no such parameter.
    """
    model = botocore.session.get_session().get_service_model(service)
    operation = {xform_name(name, "-"): name for name in model.operation_names}[command]
    members = {f"--{xform_name(name, '-')}": name for name in model.operation_model(operation).input_shape.members}
    pairs = zip(options[::2], options[1::2], strict=True)
    return Call(service, operation, {members[option]: content(folder, value) for option, value in pairs})


def content(folder: Path, value: str) -> str:
    return (folder / value.removeprefix("file://")).read_text() if value.startswith("file://") else value


CALLS = [*calls(), *calls("aws iam create-role --role-name orders-reader"), *calls("for role in driver executor; do\n  aws iam put-role-policy")]


@pytest.mark.parametrize("made", CALLS, ids=lambda made: f"{made.operation} {made.parameters.get('roleArn') or made.parameters['RoleName']}")
def test_a_call_has_the_parameters_that_the_service_wants(made: Call) -> None:
    shape = botocore.session.get_session().get_service_model(made.service).operation_model(made.operation).input_shape
    found = ParamValidator().validate(made.parameters, shape)
    assert not found.has_errors(), found.generate_report()


def test_ecr_gets_the_repositories_that_a_release_pushes() -> None:
    """It makes none on a push."""
    made = [each for each in calls("REGISTRY=111122223333") if each.operation == "CreateRepository"]
    assert {each.parameters["repositoryName"] for each in made} == {charts.OPERATOR, charts.CONSUMER, "charts/sluice"}


@pytest.fixture
def iam(credentials: None, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ARG001 - set for all
    monkeypatch.setenv("MOTO_ACCOUNT_ID", ACCOUNT)
    with mock_aws():
        client = boto3.client("iam", region_name="eu-west-1")
        for each in CALLS:
            if each.service == "iam":
                getattr(client, xform_name(each.operation))(**each.parameters)
        yield client


def test_each_role_has_the_policies_of_the_pages_table(iam: Any) -> None:
    policies = {role["RoleName"]: set(iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]) for role in iam.list_roles()["Roles"]}
    assert policies == {
        "sluice-driver": {"sluice-driver", "sluice-assume"},
        "sluice-executor": {"sluice-executor", "sluice-migration", "sluice-assume"},
        "orders-reader": {"orders-reader"},
    }
    for role, names in policies.items():
        for name in names:
            document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            file = "stream" if name == "orders-reader" else name.removeprefix("sluice-")
            assert document == json.loads((page_blocks.ROOT / "docs" / "start" / f"iam-{file}.json").read_text())


def test_an_account_is_associated_with_a_role_that_was_made(iam: Any) -> None:
    """The accounts are those that the chart makes (tests/cluster/test_start_eks.py)."""
    made = {role["Arn"] for role in iam.list_roles()["Roles"] if role["RoleName"] != "orders-reader"}
    associated = {each.parameters["serviceAccount"]: each.parameters["roleArn"] for each in CALLS if each.service == "eks"}
    assert set(associated.values()) == made
    assert {account: arn.rpartition("/")[2] for account, arn in associated.items()} == {
        "sluice-consumer": "sluice-driver",
        "sluice-executor": "sluice-executor",
    }
