"""What an edit of the spec does to a migration that runs."""

from __future__ import annotations

from typing import Any

import pytest
from plan.views import HASH, RAW, job, migration, view, wanted

from sluice_operator.plan.rules import plan
from sluice_operator.state.actions import DeleteJob
from sluice_operator.state.objects import Observed, Pod
from sluice_operator.state.status import Status

STATUS = Status(observed_generation=1, migration=migration())
RUNS = Observed(jobs=(job(),), migrators=(Pod(name="p", uid="p", role="migration", owner="job-1", phase="Running"),))
SOURCE = {"migrateFrom": {"table": "orders-kcl"}}


@pytest.mark.parametrize("edit", [{"driver": {}}, {"driver": {"resources": {}}}, {"pipeline": {**RAW["pipeline"], "env": []}}])
def test_an_edit_without_meaning_leaves_a_migration_that_runs(edit: dict[str, Any]) -> None:
    """Its Job was deleted, and the source was read again."""
    assert plan(view(spec=wanted(**SOURCE, **edit), status=STATUS, observed=RUNS)).actions == ()


def test_an_edit_of_what_a_migration_runs_makes_another_try() -> None:
    meant = wanted(**SOURCE, pipeline={**RAW["pipeline"], "image": "orders:2"})
    assert plan(view(spec=meant, status=STATUS, observed=RUNS)).actions == (DeleteJob(f"orders-migrate-{HASH}-1", "job-1"),)
