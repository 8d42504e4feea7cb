"""Which tests run in one process when several processes share the work (`pytest -n 4`).

What is slow to start is started once: a Spark session, emulators. Tests that mostly wait are begun first, each in a process of its own.
Everything else is dealt by file, and the simulations by test. (xdist's own groups do not work with pytest 9.2, which has no `_nodeid` any more.)
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

GROUPS = {  # the first that fits; those above take longest, and are begun first
    "tests/operator/behaviour/test_one_input.py": "strangers",
    "tests/operator/helm/test_driver_rights.py": "rights",
    "tests/contract/spark/test_overdue.py": "overdue",
    "tests/contract/spark/test_poison.py": "poison",
    "tests/contract/spark/test_streaming_deaths.py": "deaths",
    "tests/contract/spark/test_ordinary_queries.py": "queries",
    "tests/contract/checkpoints/test_letter_crashes.py": "letters",
    "tests/contract/checkpoints/test_poison_crashes.py": "isolation",
    "tests/contract/spark/": "spark",
    "tests/consumer/test_schema.py": "sinks",
    "tests/contract/sinks/": "sinks",
    "tests/golden/": "sinks",
    "tests/lab/nemesis/test_sink.py": "sinks",
    "tests/lab/test_demo_local.py": "demo",
    "tests/contract/kcl/": "kcl",
    "tests/contract/": "services",
}


SIMULATIONS = "tests/sim/"
ALONE = {"overdue", "poison", "deaths"}  # whole programs that wait for minutes: one after the other they are a quarter of an hour


def group(nodeid: str) -> str:
    named = _named(nodeid)
    if named is not None:
        return f"{named} {nodeid}" if named in ALONE else named
    return nodeid if nodeid.startswith(SIMULATIONS) else nodeid.split("::", maxsplit=1)[0]


def _named(nodeid: str) -> str | None:
    return next((name for path, name in GROUPS.items() if nodeid.startswith(path)), None)


def rank(item: pytest.Item) -> int:
    """Groups in the order of the table, then simulations, of which each computes for long and alone, then the rest."""
    groups = list(dict.fromkeys(GROUPS.values()))
    return groups.index(named) if (named := _named(item.nodeid)) is not None else len(groups) + (not item.nodeid.startswith(SIMULATIONS))


class Scheduler(LoadScopeScheduling):  # type: ignore[misc]  # xdist is not typed here
    """Deals groups instead of modules. A test that ends its process has failed, and is not begun again in each new one."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Deals anew what a process left that ended early; returns the test that ended it."""
        left = {name: unit for name, unit in self.assigned_work[node].items() if not all(unit.values())}
        ended_by = next((test for unit in left.values() for test, done in unit.items() if not done), None)
        for unit in left.values():
            unit.pop(ended_by, None)
        self.assigned_work[node] = {name: unit for name, unit in left.items() if unit}
        super().remove_node(node)
        return ended_by

    def schedule(self) -> None:
        """Deals the first groups, or those of a process that replaces another: a process runs a test once it knows the next one."""
        replaced = self.collection is not None
        super().schedule()
        if replaced:
            super().schedule()


def scheduler(config: pytest.Config, log: Any) -> Scheduler:
    return Scheduler(config, log)
