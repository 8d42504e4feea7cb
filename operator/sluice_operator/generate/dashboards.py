"""The chart's dashboards: `python -m sluice_operator.generate.dashboards docs/metrics.md FOLDER` writes them.

Metrics are those of the operator's registry, and those of the table in docs/metrics.md. The operator does not import the consumer, so a test compares
that table with the driver's registry. A dashboard that names another metric, or a label that its metric lacks, is refused and not written.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_operator.generate import promql
from sluice_operator.generate.dashboard_consumer import CONSUMER
from sluice_operator.generate.dashboard_fleet import FLEET
from sluice_operator.generate.dashboard_shard import SHARD
from sluice_operator.generate.grafana import Dashboard, Panel, document
from sluice_operator.generate.promql import KnownMetric
from sluice_operator.generate.reference import families

if TYPE_CHECKING:
    from collections.abc import Mapping

DASHBOARDS = (FLEET, CONSUMER, SHARD)
ROW = re.compile(r"^\| `(sluice_\w+)` \| (\w+) \|([^|]*)\| ([^|]+) \|$", re.MULTILINE)


def known(page: str) -> dict[str, KnownMetric]:
    """The metrics of the operator, and those of drivers as docs/metrics.md (`page`) lists them before its first heading."""
    drivers = [
        KnownMetric(name, kind, frozenset(re.findall(r"`(\w+)`", labels)), text)
        for name, kind, labels, text in ROW.findall(page.partition("\n## ")[0])
    ]
    operators = [KnownMetric(name, kind, frozenset(labels), text) for name, kind, labels, text in families()]
    return {family.name: family for family in (*operators, *drivers)}


def described(panel: Panel, metrics: Mapping[str, KnownMetric]) -> str:
    """What the metrics of a panel say, each once.

    Raises:
        ValueError: a query names no metric, one that does not exist, or a label that a metric lacks.
    """
    found: dict[str, str] = {}
    for query in panel.queries:
        used = promql.named(query.expr, metrics)
        if not used:
            raise ValueError(f"{panel.title}: a query without a metric: {query.expr}")
        found |= {family.name: f"{family.name}: {family.help.rstrip('.')}." for family in used}
    return "\n\n".join(found.values())


def rendered(dashboard: Dashboard, metrics: Mapping[str, KnownMetric]) -> str:
    """The file's text.

    Raises:
        ValueError: as `described`; a variable is held to the same.
    """
    for variable in dashboard.variables:
        promql.named(f"max by ({variable.label}) ({variable.selector})", metrics)
    return json.dumps(document(dashboard, lambda panel: described(panel, metrics)), indent=2, ensure_ascii=False) + "\n"


def main(page: str, folder: str) -> None:
    """Write each into the folder."""
    metrics = known(Path(page).read_text(encoding="utf-8"))
    Path(folder).mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (Path(folder) / f"{dashboard.uid}.json").write_text(rendered(dashboard, metrics), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
