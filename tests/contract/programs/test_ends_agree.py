"""How a driver or a migration ends is what the operator understands: exit codes and reasons (docs/interfaces.md, "Exit codes of driver and Job")."""

from __future__ import annotations

import ast
from pathlib import Path

from sluice_checkpoints.errors import Fenced, LeaseHeld, Refused, SluiceError, SourceActive
from sluice_operator.observe import parse
from sluice_operator.plan import known_words

ROOT = Path(__file__).parents[3] / "consumer"
PACKAGES = [ROOT / "sluice_checkpoints", ROOT / "sluice_consumer"]
NODES = [node for package in PACKAGES for path in sorted(package.rglob("*.py")) for node in ast.walk(ast.parse(path.read_text()))]


def errors() -> set[str]:
    """Names of the errors that Sluice raises on purpose: each is a reason."""
    bases = {node.name: {getattr(base, "id", "") for base in node.bases} for node in NODES if isinstance(node, ast.ClassDef)}
    found, before = {SluiceError.__name__}, set[str]()
    while found != before:
        before, found = found, found | {name for name, of in bases.items() if of & found}
    return {name for name in found if not name.startswith("_")}  # those never leave their module


def ends() -> dict[str, int]:
    """Other reasons with which a driver ends, and their exit codes."""
    calls = (node for node in NODES if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Ending")
    plain = ((call.args[1], call.args[0]) for call in calls)
    return {
        str(reason.value): ast.literal_eval(code) for reason, code in plain if isinstance(reason, ast.Constant) and isinstance(code, ast.Constant)
    }


def failures() -> set[str]:
    """Those of which a person is told."""
    return {reason for reason, code in ends().items() if code}


def test_the_operator_knows_each_exit_code() -> None:
    """Of refusals, and of what is to come again."""
    assert {kind.exit_code for kind in (Refused, LeaseHeld, SourceActive, Fenced)} == set(parse.EXITS) - {0}


def test_the_reasons_that_the_operator_counts_are_those_that_a_driver_or_a_migration_gives() -> None:
    """A name that only one of the two knows would be counted as Other. `SystemExit` is the user's own."""
    by_exit = {*parse.EXITS.values(), "Failed"}  # where a program has said nothing
    assert known_words.OF_PROGRAMS - errors() - failures() - by_exit == set()
    assert failures() - known_words.OF_PROGRAMS == {"SystemExit"}
    assert failures() >= {"StartOverdue", "BatchOverdue", "DrainTimeout", "DriverExited", "DriverKilled"}


def test_the_operator_believes_each_reason_of_a_driver() -> None:
    """None is one of those that only the operator can know."""
    given = errors() | failures()
    assert {reason for reason in given if known_words.reason(reason, "") != reason} == set()
