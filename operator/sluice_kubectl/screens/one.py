"""`status NAME`: one consumer on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sluice_kubectl.screens.words import Hanging, age, grid, joined, lag, number, phase, ready, row, unreadable, why
from sluice_kubectl.views.consumer import AutoscaleView, ConsumerView, PositionView, StandbyView, TrialView, VersionView
from sluice_kubectl.views.next_steps import next_step
from sluice_kubectl.views.objects import EventView, PodView
from sluice_operator.names import clock, counted

LAST_EVENTS = 5
VERSIONS = 3  # the status has more
LABEL = 13  # columns of a fact's name
WAIT = {"Held", "Lost", "Failing"}  # states of a move that is tried again


def one_consumer(view: ConsumerView, pods: Sequence[PodView], events: Sequence[EventView], now: datetime) -> RenderableType:
    """Headline, facts, what conditions say, pods, and the last events."""
    name = Text(f"{view.namespace}/{view.name}", style="bold")
    parts: list[RenderableType] = [Hanging(Text.assemble(name, "  ", phase(view), "  ready ", ready(view), f"  age {age(view.created, now)}"))]
    if reason := why(view):
        parts.append(Padding(Text(reason, style="red" if view.stalled else "yellow"), (0, 0, 0, 2)))
    parts += [Text(), *(Hanging(Text(fact), LABEL) for fact in _facts(view, pods, now))]
    for title, table in (
        ("Conditions", _conditions(view, now)),
        ("Pods", pod_table(pods, now)),
        ("Last events", event_table(events[-LAST_EVENTS:], now)),
    ):
        if table.row_count:
            parts += [Text(), Text(title, style="bold"), Padding(table, (0, 0, 0, 2))]
    return Group(*parts)


def _facts(view: ConsumerView, pods: Sequence[PodView], now: datetime) -> list[str]:
    figures, driver = view.figures, view.driver
    facts = [f"stream       {view.stream} in {view.region}; table {view.table}"]
    facts += [f"pool         {view.pool}"] if view.pool else []
    if figures.reported:
        open_ = "none open" if figures.open_batch is None else f"{figures.open_batch} open since {age(figures.batch_at, now)}"
        work = f"batch {number(figures.batch)} committed, {open_}"
        facts.append(f"behind       {lag(figures, now)}; {number(figures.records_per_second)} records/s{_busy(figures.busy)}; {work}")
        facts.append(
            f"shards       {number(figures.open_shards)} open, {number(figures.ended_shards)} ended, {number(figures.held_shards)} held by the driver"
        )
        if figures.dead_letters:
            facts.append(f"dead letters {counted(figures.dead_letters, 'record')} left out so far{_letters(view)}")
    facts += _drivers(view, now)
    if driver.exit_reason:
        code = f" (exit {driver.exit_code})" if driver.exit_code is not None else ""
        facts.append(f"last end     {driver.exit_reason}{code} {age(driver.exit_at, now)} ago: {driver.exit_message or 'no message'}")
    if view.failures or view.next_start:
        due = f"; next driver at {clock(view.next_start, now)}" if view.next_start else ""
        facts.append(f"failures     {view.failures} since the last stable run{due}")
    if view.migration:
        due = f"; next try at {clock(view.next_migration, now)}" if view.next_migration else ""
        facts.append(f"migration    {view.migration}{due}")
    if view.autoscale:
        facts.append(f"autoscale    {_autoscale(view.autoscale, now)}")
    if view.trial:
        facts.append(f"trial        {_trial(view.trial, view.figures.batch, now)}")
    if view.position:
        facts.append(f"position     {_position(view.position, now)}")
    if step := next_step(view, pods):
        facts.append(f"next         {step}")
    return facts


def _drivers(view: ConsumerView, now: datetime) -> list[str]:
    driver, standby = view.driver, view.standby
    seat = f" in the pod {driver.host} of a pool" if driver.pod and driver.host else ""
    named = f"driver       attempt {driver.attempt}, {driver.pod or 'no pod'}{seat}, since {age(driver.started, now)}{_stopping(view)}"
    versions = [f"{'' if n else 'versions':<12} {_version(version, now)}" for n, version in enumerate(view.versions[:VERSIONS])]
    return [*([named] if driver.attempt else []), *([f"standby      {_standby(standby, now)}"] if standby else []), *versions]


def _version(version: VersionView, now: datetime) -> str:
    spec = f", spec {version.hash}" if version.hash else ""
    reset = f", after the reset {version.reset}" if version.reset else ""
    return f"from batch {number(version.first)} since {age(version.since, now)}: {version.image or 'unknown image'}{spec}{reset}"


def _busy(share: float | None) -> str:
    return "" if share is None else f"; {share:.0%} busy"


def _letters(view: ConsumerView) -> str:
    if view.letters is None:
        return ""
    kind, _, place = view.letters.partition(" ")
    return f", to {place}; next: dead-letters list {view.name}" if kind == "path" else f", to {view.letters}"


def _autoscale(scale: AutoscaleView, now: datetime) -> str:
    changed = f", since {age(scale.at, now)}" if scale.at else ""
    message = f": {scale.message}" if scale.message else ""
    return f"{counted(scale.replicas, 'executor')} of {scale.least} to {number(scale.most)}{changed}; {scale.reason}{message}"


def _standby(standby: StandbyView, now: datetime) -> str:
    parts = [f"{standby.pod}: {standby.state} since {age(standby.since, now)}"]
    parts += [standby.message] if standby.message else []
    parts += [f"next try at {clock(standby.next_try, now)}"] if standby.next_try and standby.state == "BackingOff" else []
    return "; ".join(parts)


def _trial(trial: TrialView, batch: int | None, now: datetime) -> str:
    if trial.hash is None:
        return f"version {trial.proven} is proven"
    done = max((batch or 0) - trial.base, 0) if trial.base is not None else 0
    parts = [f"version {trial.hash}: {trial.state} since {age(trial.since, now)}"]
    parts += [f"{min(done, trial.wanted)} of {trial.wanted} batches"] if trial.state != "RolledBack" else []
    parts += [f"{trial.reason}, {trial.message}"] if trial.reason else []
    return "; ".join([*parts, f"version {trial.proven} is proven" if trial.proven else "no version is proven"])


def _position(position: PositionView, now: datetime) -> str:
    ended = f" {age(position.at, now)} ago" if position.at else ""
    parts = [f"{position.id}: {position.state}{ended}"]
    parts += [f"to {position.to}"] if position.to else []
    parts += [f"{counted(position.again, 'record')} again"] if position.again is not None else []
    parts += [f"{counted(position.passed_over, 'record')} passed over"] if position.passed_over else []
    parts += [f"digest {position.digest}"] if position.digest else []
    parts += [f"next try at {clock(position.next_try, now)}"] if position.next_try and position.state in WAIT else []
    return ", ".join(parts)


def _stopping(view: ConsumerView) -> str:
    parts = [f"stopping: {view.driver.stopping}"] if view.driver.stopping else []
    parts += [f"{view.driver.leaving} is leaving"] if view.driver.leaving else []
    return "".join(f"; {remark}" for remark in parts)


def _conditions(view: ConsumerView, now: datetime) -> Table:
    table = grid("condition", "status", "since", "reason", "message", wraps="message")
    for each in view.conditions:
        if each.speaks and each.type != "Ready":
            row(table, each.type, each.status, age(each.since, now), each.reason, each.message)
    return table


def pod_table(pods: Sequence[PodView], now: datetime) -> Table:
    """One line a pod."""
    table = grid("pod", "role", "state", "ready", "restarts", "node", "age")
    for pod in pods:
        state = joined([f"{pod.state}, leaving" if pod.leaving else pod.state, *unreadable(pod.unreadable)])
        row(table, pod.name, pod.role, state, "yes" if pod.ready else "no", str(pod.restarts), pod.node, age(pod.created, now))
    return table


def event_table(events: Sequence[EventView], now: datetime) -> Table:
    """One line an event, the newest last, where the eye is."""
    table = grid("ago", "type", "reason", "message", wraps="message")
    for event in events:
        kind = Text("Warning", style="yellow") if event.warning else Text("Normal")
        times = f" (x{event.count})" if event.count > 1 else ""
        row(table, age(event.at, now), kind, event.reason, joined([event.message + times, *unreadable(event.unreadable)]))
    return table
