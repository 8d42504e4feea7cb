"""The spec of a pool as members read it: once for each text, whatever else changes in the resource."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from odd_values import deep

from sluice_operator.resource import fields, pools
from sluice_operator.resource.fields import InvalidSpec

SPEC: dict[str, Any] = {"replicas": 2, "maxDriverDeaths": 5, "pipeline": {"image": "shop/streams:7"}}


def test_equal_specs_are_validated_once_and_an_edit_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty members ask for it whenever one of them is reconciled. Its status is no part of it."""
    real, calls = fields.validated, []
    monkeypatch.setattr(fields, "validated", lambda raw, model: calls.append(raw) or real(raw, model))
    spec = {**SPEC, "slotShare": 0.3125}  # of this test alone
    found = {id(pools.as_consumer({**spec})) for _ in range(40)}
    assert (len(found), len(calls), pools.parse(spec).max_driver_deaths) == (1, 2, 5)
    assert pools.as_consumer({**spec, "replicas": 3}).replicas == 3
    assert pools.as_consumer(spec).replicas == 2


@pytest.mark.parametrize(
    "raw", [{**SPEC, "slotShare": 2}, {**SPEC, "sparkConf": deep(300)}, {"replicas": sys.maxsize * 4}, {"pipeline": {"image": "\ud800"}}]
)
def test_an_invalid_spec_is_refused_each_time_and_names_its_field(raw: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(InvalidSpec, match=r"slotShare|sparkConf|replicas|image"):
            pools.as_consumer(raw)
