"""Every wait of the programs has a row in docs/architecture.md, "Waits": what ends it, after how long, and what is said meanwhile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "sluice_checkpoints": ROOT / "consumer/sluice_checkpoints",
    "sluice_consumer": ROOT / "consumer/sluice_consumer",
    "sluice_operator": ROOT / "operator/sluice_operator",
    "sluice_kubectl": ROOT / "operator/sluice_kubectl",
}
NO_PROGRAM = {"sluice_consumer/testing"}  # for tests, and for those who build
WAITING = {"wait", "join", "sleep", "wait_for", "_sleep", "result", "recv", "recv_bytes", "readline", "accept", "awaitTermination"}
WAITING |= {"processAllAvailable", "waitUntilEmpty", "communicate"}
SECONDS = re.compile(r"^[\d.]+$|SECONDS|seconds|PATIENCE|patience|LAST_TURN")
COMPUTES = {
    "sluice_checkpoints.migrate.lineage:deleted_as_finished",
    "sluice_checkpoints.protocol.row_kinds:anything",
    "sluice_checkpoints.termination_log:cut",
    "sluice_consumer.kinesis.cbor_vectorized:layout",
    "sluice_consumer.kinesis.cbor_vectorized:walk",
    "sluice_consumer.kinesis.pacing:_read",
    "sluice_consumer.shards.reader:_up_to",
}
"""Loops over what is at hand: they ask nobody, and end with it."""
ROW = re.compile(r"^\| `(?P<wait>sluice_\w+[\w.]*:\w+)`", re.MULTILINE)


def waits(tree: ast.AST) -> Iterator[str]:
    """Names of the functions of a module that wait: a loop that sleeps or has no condition, or a call that may block."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(waiting, own(function))):
            yield function.name


def own(function: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from own(child)


def waiting(node: ast.AST) -> bool:
    if isinstance(node, ast.While):
        return isinstance(node.test, ast.Constant) or any(isinstance(part, ast.Call) for part in ast.walk(node.test))
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id in {"wait", "sleep"}
    if ast.unparse(node.func) == "select.select":
        return True
    return isinstance(node.func, ast.Attribute) and node.func.attr in WAITING and not of_text(node)


def of_text(call: ast.Call) -> bool:
    """Whether it is the `join` of a text or a path. That of a thread takes nothing, or seconds."""
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr == "join" and bool(call.args) and not SECONDS.search(ast.unparse(call.args[0]))


def found() -> dict[str, str]:
    seen = dict[str, str]()
    for package, folder in PACKAGES.items():
        for file in sorted(folder.rglob("*.py")):
            inside = file.relative_to(folder.parent)
            if not any(inside.is_relative_to(other) for other in NO_PROGRAM):
                module = ".".join((package, *inside.with_suffix("").parts[1:])).removesuffix(".__init__")
                seen |= {wait: str(inside) for name in waits(ast.parse(file.read_text())) if (wait := f"{module}:{name}") not in COMPUTES}
    return seen


@pytest.fixture(scope="module")
def told() -> list[str]:
    return ROW.findall((ROOT / "docs/architecture.md").read_text())


def test_every_wait_has_a_row_and_no_row_is_stale(told: list[str]) -> None:
    """A missing row is printed as it is to be filled in: what ends the wait, after how long, and what is said meanwhile."""
    there = found()
    missing = [f"| `{wait}` | what ends it | after how long | what is said |" for wait in sorted(there) if wait not in told]
    stale = [wait for wait in told if wait not in there]
    assert not missing, 'docs/architecture.md, "Waits", lacks these rows:\n' + "\n".join(missing)
    assert not stale, f'docs/architecture.md, "Waits", has rows of what waits no more: {stale}'
    assert told == sorted(set(told)), "each wait once, in the order of the alphabet"


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("while True:\n  pass", True),
        ("while not self.done():\n  pass", True),
        ("while left:\n  left = left[1:]", False),
        ("thread.join()", True),
        ("thread.join(5)", True),
        ("', '.join(names)", False),
        ("os.pathsep.join(names)", False),
        ("time.sleep(1)", True),
        ("future.result()", True),
        ("event.wait()", True),
    ],
)
def test_a_wait_is_recognised(text: str, *, wait: bool) -> None:
    """A loop over what is at hand, and the joining of text, are none."""
    assert any(waiting(node) for node in ast.walk(ast.parse(text))) == wait
