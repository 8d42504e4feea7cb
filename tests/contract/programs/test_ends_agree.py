"""How a driver or a migration ends is what the operator understands: exit codes and reasons (docs/interfaces.md, "Exit codes of driver and Job")."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from sluice_checkpoints.aws import denials
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.errors import AccessDenied, Fenced, LeaseHeld, Refused, SluiceError, SourceActive
from sluice_operator.observe import parse
from sluice_operator.plan import known_words
from sluice_operator.plan.advice import advised
from sluice_operator.plan.conditions import LONGEST

ROOT = Path(__file__).parents[3] / "consumer"
PACKAGES = [ROOT / "sluice_checkpoints", ROOT / "sluice_consumer"]
NODES = [node for package in PACKAGES for path in sorted(package.rglob("*.py")) for node in ast.walk(ast.parse(path.read_text()))]


def errors() -> set[str]:
    bases = {node.name: {getattr(base, "id", "") for base in node.bases} for node in NODES if isinstance(node, ast.ClassDef)}
    found, before = {SluiceError.__name__}, set[str]()
    while found != before:
        before, found = found, found | {name for name, of in bases.items() if of & found}
    return {name for name in found if not name.startswith("_")}  # those never leave their module


def ends() -> dict[str, int]:
    calls = (node for node in NODES if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Ending")
    plain = ((call.args[1], call.args[0]) for call in calls)
    return {
        str(reason.value): ast.literal_eval(code) for reason, code in plain if isinstance(reason, ast.Constant) and isinstance(code, ast.Constant)
    }


def failures() -> set[str]:
    return {reason for reason, code in ends().items() if code}


def test_the_operator_knows_each_exit_code() -> None:
    assert {kind.exit_code for kind in (Refused, LeaseHeld, SourceActive, Fenced)} == set(parse.EXITS) - {0}


def test_the_reasons_that_the_operator_counts_are_those_that_a_driver_or_a_migration_gives() -> None:
    """A name that only one of the two knows would be counted as Other. `SystemExit` is the user's own."""
    by_exit = {*parse.EXITS.values(), "Failed"}  # where a program has said nothing
    assert {kind.__name__ for kind in (AccessDenied, Refused)} <= known_words.OF_PROGRAMS
    assert known_words.OF_PROGRAMS - errors() - failures() - by_exit == set()
    assert failures() - known_words.OF_PROGRAMS == {"SystemExit"}
    assert failures() >= {"StartOverdue", "BatchOverdue", "DrainTimeout", "DriverExited", "DriverKilled"}


def test_the_operator_believes_each_reason_of_a_driver() -> None:
    given = errors() | failures()
    assert {reason for reason in given if known_words.reason(reason, "") != reason} == set()


def test_a_condition_has_room_for_both_statements_of_a_denied_role() -> None:
    """With names as eksctl gives them, and beside the advice: half a statement is of no use in IAM."""
    role = AssumedRole("arn:aws:iam::444455556666:role/data-platform/kinesis-orders-prod-reader", "shop-production-orders")
    pod = "arn:aws:sts::111122223333:assumed-role/eksctl-production-addon-iamserviceaccount-shop-Role1-1A2B3C4D5E6F/eks-production-orders-0a1b2c3d"
    denied = denials.of_role(role, f"User: {pod} is not authorized to perform: sts:AssumeRole on resource: {role.arn}")
    shown = advised(AccessDenied.__name__, f"{denied}; attempt 12 at 10:00:19Z", "o" * 52, stalled=True)
    decoder = json.JSONDecoder()
    found = [decoder.raw_decode(shown, each.start())[0] for each in re.finditer(r'\{"Effect"', shown)]
    assert [("Principal" in each, "Resource" in each) for each in found] == [(True, False), (False, True)]
    assert len(shown) <= LONGEST
    assert shown.endswith("then run `kubectl sluice restart " + "o" * 52 + "`.")
