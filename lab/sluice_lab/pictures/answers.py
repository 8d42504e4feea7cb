"""What a Prometheus answers to the queries of a dashboard. The variables of a query are filled in as Grafana does it."""

from __future__ import annotations

import json
import math
import re
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice_lab.pictures.panels import DrawnPanel, legend
from sluice_lab.pictures.story import Series


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus' HTTP API.

    Attributes:
        get: the body of the reply to a GET of a path with its query, below `/api/v1/`.
    """

    get: Callable[[str], str]

    def ask(self, path: str, **asked: str) -> Any:
        """The data of an answer."""
        return json.loads(self.get(f"{path}?{urllib.parse.urlencode(asked)}"))["data"]

    def has(self, expression: str) -> bool:
        """Whether a query has a value that is a number: another one draws nothing."""
        return any(not math.isnan(float(one["value"][1])) for one in self.ask("query", query=expression)["result"])

    def values(self, selector: str, label: str) -> list[str]:
        """The values of a label in the series that a selector finds."""
        found: list[str] = self.ask(f"label/{label}/values", **{"match[]": selector})
        return found

    def history(self, panel: DrawnPanel, chosen: Mapping[str, str], start: float, end: float) -> list[Series]:
        """The series of a panel between two times (Unix seconds), in steps of a second. Values that are no number are left out."""
        found = []
        for target in panel.targets:
            asked = {"query": filled(target.expr, chosen), "start": str(start), "end": str(end), "step": "1"}
            for one in self.ask("query_range", **asked)["result"]:
                points = tuple((float(at), float(value)) for at, value in one["values"] if not math.isnan(float(value)))
                found.append(Series(legend(target.legend, one["metric"]), points))
        return found


def filled(text: str, chosen: Mapping[str, str]) -> str:
    """A query, or a selector, with values for its variables."""
    return re.sub(r"\$(\w+)", lambda found: chosen[found[1]], text)


def queries(board: Mapping[str, Any], chosen: Mapping[str, str]) -> set[str]:
    """All queries of a dashboard, filled."""
    return {filled(target["expr"], chosen) for panel in board["panels"] for target in panel.get("targets", ())}


def choose(board: Mapping[str, Any], values: Callable[[str, str], Sequence[str]], interval: str, **wanted: str) -> dict[str, str]:
    """A value for each variable of a dashboard: the wanted one, else "all" where several may be chosen, else the first.

    Args:
        board: the dashboard's JSON.
        values: of a label, for a selector.
        interval: what `$__rate_interval` becomes, such as `20s`.
        wanted: values by the variable's name.

    Raises:
        ValueError: a variable has no value, or not the wanted one.
    """
    chosen = {"__rate_interval": interval}
    for variable in board["templating"]["list"][1:]:  # the first is the data source
        asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
        found = values(filled(asked[1], chosen), asked[2]) if asked else ()
        name = variable["name"]
        if not found or wanted.get(name, found[0]) not in found:
            raise ValueError(f"variable {name}: {wanted.get(name, 'no value')} is not among {list(found)}")
        chosen[name] = wanted.get(name) or variable.get("allValue") or found[0]
    return chosen
