"""The generated parts of docs/rules.md, monitoring.md and runbooks.md: `python -m sluice_lab.generate.reference FILE…` writes them.

A part is between `<!-- generated: name -->` and `<!-- end -->`. The order of rules comes from the plan's own table, and a rule's
phases from its source: those it names, and those of the functions it calls.

Every reason with advice has one (`tests/lab/generate/test_runbooks.py`); alerts name theirs in charts/sluice/files/alerts.yaml.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import Counter

from sluice_lab.generate import markdown
from sluice_lab.generate.markdown import slug, table
from sluice_operator.plan.advice import FAILURES, OTHERS
from sluice_operator.plan.rules import RULES
from sluice_operator.state.status import Phase
from sluice_operator.telemetry.gauges import Gauges, Sources
from sluice_operator.telemetry.metrics import OperatorMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANY = "By reason"  # the table of all reasons: where an alert leads that fires for any of them
ALERTS = Path(__file__).parents[3] / "charts" / "sluice" / "files" / "alerts.yaml"
ALERT = re.compile(r"(?s)- alert: (\w+)\n.*?runbook: runbooks\.md#([\w-]+)")

RUNBOOKS: dict[str, tuple[str, ...]] = {
    "A consumer is behind": ("HotShard", "NoGain", "NotBusy", "AtMaximum", "AtActiveShards"),
    "Records are about to expire": ("RetentionNear",),
    "Records may be lost": ("DataLost", "DataLossSuspected"),
    "The operator cannot act on a resource": ("SpecInvalid", "ReconcileFailed", "ApiRefused"),
    "A version was rolled back": ("RolledBack",),
    "Positions are not moved": ("PositionRefused", "Resetting", "ResetLost", "ResetFailing", "StartIgnored"),
    "A consumer does not start": (
        "Refused",
        "StreamNotFound",
        "DriverStarting",
        "SpecChanged",
        "RestartRequested",
        "WaitingOutLease",
        "StandbyNotReady",
    ),
    "A consumer of a pool does not start": ("PoolMissing", "PoolFull", "PoolSuspended", "PoolNotReady"),
    "A member ends the process of its pool": ("PoolFailing", "OutOfPool"),
    "AWS denies a permission": ("AccessDenied", "Refused"),
    "AWS throttles calls": (),
    "A pod cannot start": (
        "ImagePullBackOff",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "CrashLoopBackOff",
        "Unschedulable",
        "ExecutorsPending",
        "ExecutorsOverdue",
        "StandbyWithoutRoom",
    ),
    "A driver fails again and again": ("Failed", "Completed", "OOMKilled", "Killed", "Evicted", "DriverLost", "NotNow", "Interrupted"),
    "An executor runs out of memory": (),
    "A batch that does not end": ("BatchOverdue",),
    "Records that cannot be processed": ("Isolating", "PoisonExcluded", "TooMuchPoison"),
    "A driver is silent, or its node is lost": ("ReportStale", "DriverOverdue", "ExecutorsLeaving", "Forced"),
    "A driver has no standby": ("StandbyAwaited", "StandbySilent", "StandbyNotReady", "Unschedulable", "ApiRefused"),
    "Drains are cut short": (),
    "The lease is held, or changes hands": ("LeaseHeld", "Held", "Fenced"),
    "The checkpoint table is refused": ("Refused",),
    "A migration failed": ("MigrationFailed", "MigrationLost", "Migrating"),
    "The old consumer still runs": ("SourceActive", "SourceMoved"),
    "A pod, a Job or a namespace stays": ("StrayDriver", "StrayJob", "PodHeld"),
    "Nobody leads": (),
    "The operator is behind": (),
}
"""Headings in the page's order, and the reasons of conditions that lead there. A reason may lead to several."""
PACKAGE = "sluice_operator."


def link(heading: str, text: str = "") -> str:
    """To a heading of the page, on the page."""
    return f"[{text or heading}](#{slug(heading)})"


def symptoms() -> str:
    """Every runbook, with the reasons and the alerts that lead to it."""
    alerts = ALERT.findall(ALERTS.read_text())

    def row(heading: str, reasons: Iterable[str]) -> tuple[str, str, str]:
        return link(heading), ", ".join(f"`{reason}`" for reason in reasons), ", ".join(f"`{name}`" for name, to in alerts if to == slug(heading))

    return table(("symptom", "reasons", "alerts"), [row(ANY, ()), *(row(*each) for each in RUNBOOKS.items())])


def failures() -> str:
    """Every reason of a failure, with a link to its first runbook: what the operator does, and what you do."""
    first = {reason: heading for heading, reasons in reversed(RUNBOOKS.items()) for reason in reasons}
    rows = [(link(first[reason], f"`{reason}`"), advice.does, advice.do) for reason, advice in FAILURES.items()]
    others = (link("A driver fails again and again", "any other reason that a driver gives"), OTHERS.does, OTHERS.do)
    return table(("reason", "the operator", "you"), [*rows, others])


def phases(rule: Callable[..., Any]) -> list[Phase]:
    """The phases a rule may end in, in the order of the enum."""
    found = set(_phases(rule, set()))
    return [phase for phase in Phase if phase in found]


def _phases(function: Callable[..., Any], seen: set[object]) -> Iterator[Phase]:
    if function in seen:
        return
    seen.add(function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    overruled = {id(node) for node in _overruled(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Phase":
            yield Phase[node.attr]
        elif isinstance(node, (ast.Name, ast.Attribute)) and id(node) not in overruled:
            yield from _meant(_value(node, vars(inspect.getmodule(function))), seen)


def _value(node: ast.AST, names: dict[str, Any]) -> object:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    return getattr(_value(node.value, names), node.attr, None) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else None


def _meant(value: object, seen: set[object]) -> Iterator[Phase]:
    """The phases behind a name: of a phase, of a function of this package, or of a table of either."""
    if isinstance(value, Phase):
        yield value
    elif inspect.isfunction(value) and value.__module__.startswith(PACKAGE):
        yield from _phases(value, seen)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _meant(item, seen)


def _overruled(tree: ast.AST) -> Iterator[ast.AST]:
    """Calls whose step is only used as `replace(step, phase=…)`."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "replace"]
    steps = {arg.id for call in calls if any(word.arg == "phase" for word in call.keywords) for arg in call.args if isinstance(arg, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr) and node.target.id in steps:
            yield from ast.walk(node.value)


def rules() -> str:
    """What each rule decides, in their order."""
    rows = [(str(n), f"`{rule.__name__}`", inspect.getdoc(rule), ", ".join(phases(rule))) for n, rule in enumerate(RULES, 1)]
    return table(("", "rule", "what it decides", "phase"), rows)


def by_phase() -> str:
    """Which rules can have decided on a phase that you see, with their numbers."""
    ending = {phase: [f"{n} `{rule.__name__}`" for n, rule in enumerate(RULES, 1) if phase in phases(rule)] for phase in Phase}
    return table(("phase", "rules"), [(str(phase), ", ".join(names)) for phase, names in ending.items()])


def families() -> list[tuple[str, str, tuple[str, ...], str]]:
    """Every metric of the operator, from its registry: name as scraped (of a histogram without `_bucket`), type, labels, and what it says."""
    counted = OperatorMetrics()
    found = [(_name(item), item._type, item._labelnames, item._documentation) for item in counted.registry._collector_to_names]  # type: ignore[attr-defined]  # noqa: SLF001 - the library shows labels nowhere else
    gauges = Gauges(Sources(list, lambda: False, dict)).describe()
    return found + [(family.name, family.type, family._labelnames, family.documentation) for family in gauges]  # noqa: SLF001 - as above


def metrics() -> str:
    """Every metric of the operator, as a table."""
    rows = [(f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), text) for name, kind, labels, text in families()]
    return table(("metric", "type", "labels", "description"), rows)


def _name(collector: Any) -> str:
    return f"{collector._name}_total" if isinstance(collector, Counter) else str(collector._name)  # noqa: SLF001 - as above


PARTS = {"rules": rules, "phases": by_phase, "metrics": metrics, "symptoms": symptoms, "failures": failures}


def filled(text: str) -> str:
    """The text with every generated part as the code has it now."""
    return markdown.filled(text, PARTS)


def main(files: list[str]) -> None:
    """Write into each file."""
    for name in files:
        path = Path(name)
        path.write_text(filled(path.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
