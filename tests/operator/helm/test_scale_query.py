"""The query of docs/how-to/scale.md, asked by the real Prometheus: busy decides how many executors, and lag whether there may be more."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from sluice_lab import places
from sluice_lab.machine import prometheus

PAGE = places.REPO / "docs" / "how-to" / "scale.md"
WHERE = '{namespace="shop",name="orders"}'


def trigger() -> dict[str, str]:
    (block,) = re.findall(r"```yaml\n(apiVersion: keda.*?)```", PAGE.read_text(), re.DOTALL)
    (one,) = yaml.safe_load(block)["spec"]["triggers"]
    assert one["metricType"] == "Value"
    found: dict[str, str] = one["metadata"]
    return found


@pytest.mark.parametrize(
    ("busy", "lag", "asked"),
    [("1", "600", 1.0), ("1", "20", 0.6), ("0.3", "20", 0.3), ("0.3", "600", 0.3), ("0", "0", 0.0), (None, None, None)],
)
def test_the_query_adds_executors_only_behind_a_stream(busy: str | None, lag: str | None, asked: float | None, tmp_path: Path) -> None:
    """Else it gives at most the threshold, which asks for no more than there are. Without a driver there is no figure, and nothing is changed."""
    given = {"sluice_consumer_busy_ratio": busy, "sluice_consumer_lag_seconds": lag}
    series = [{"series": name + WHERE, "values": f"{value}x5"} for name, value in given.items() if value is not None]
    expected = [] if asked is None else [{"labels": "{}", "value": asked}]
    case = {"expr": trigger()["query"], "eval_time": "3m", "exp_samples": expected}
    (tmp_path / "case.json").write_text(json.dumps({"tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [case]}]}))
    program = prometheus.program("promtool")
    done = subprocess.run((program, "test", "rules", "case.json"), capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert float(trigger()["threshold"]) == 0.6
