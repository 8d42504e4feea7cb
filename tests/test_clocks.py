"""No test asserts on a clock: on a busy machine that says nothing of Sluice. What is listed here may only become less."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
CLOCKS = ("monotonic(", "perf_counter(", "time.time(", "process_time(", "thread_time(")
LISTED = {
    "tests/cluster/cluster_bench.py:until": "patience",
    "tests/contract/kinesis/conftest.py:_settle": "patience",
    "tests/contract/spark/pipelines_of_tests.py:_not_needed": "patience",
    "tests/contract/spark/pipelines_of_tests.py:afterwards": "patience",
    "tests/contract/spark/test_group_run.py:until": "patience",
    "tests/contract/spark/test_group_run.py:test_a_run_whose_lease_is_lost_ends_though_it_hangs_and_another_consumer_goes_on": "patience",
    "tests/contract/spark/test_embedded_session.py:test_a_lease_is_released_only_when_no_task_of_a_failed_run_can_be_working": "at least",
    "tests/cluster/test_rules_nodes.py:test_a_driver_that_should_be_gone_is_named_with_the_way_to_give_it_up": "at least",
    "tests/cluster/test_failover.py:test_a_driver_whose_pod_is_deleted_is_followed_within_seconds": "make test-more",
}
"""Why each may: it waits for something, it says that something took at least as long, or no run of CI has it."""


def functions(path: Path) -> Iterator[str]:
    """Those that read a clock and assert an order."""
    source = path.read_text()
    if not any(clock in source for clock in CLOCKS):
        return
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and any(clock in "\n".join(lines[node.lineno - 1 : node.end_lineno]) for clock in CLOCKS):
            orders = [part for part in ast.walk(node) if isinstance(part, ast.Assert) and re.search("[<>]", ast.unparse(part.test))]
            if orders:
                yield f"{path.relative_to(HERE.parent)}:{node.name}"


def test_those_that_assert_on_a_clock_are_listed_and_no_more() -> None:
    found = {name for path in HERE.rglob("*.py") for name in functions(path)}
    assert found == LISTED.keys()
