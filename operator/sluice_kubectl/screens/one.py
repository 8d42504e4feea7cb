"""`status NAME`: one consumer on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sluice_kubectl.screens.words import Hanging, age, grid, lag, number, phase, ready, row, unreadable, why
from sluice_kubectl.views.consumer import ConsumerView
from sluice_kubectl.views.next_steps import next_step
from sluice_kubectl.views.objects import EventView, PodView
from sluice_operator.names import clock, counted

LAST_EVENTS = 5
LABEL = 11  # columns of a fact's name


def one_consumer(one: ConsumerView, pods: Sequence[PodView], events: Sequence[EventView], now: datetime) -> RenderableType:
    """Headline, facts, what conditions say, pods, and the last events."""
    name = Text(f"{one.namespace}/{one.name}", style="bold")
    parts: list[RenderableType] = [Hanging(Text.assemble(name, "  ", phase(one), "  ready ", ready(one), f"  age {age(one.created, now)}"))]
    if said := why(one):
        parts.append(Padding(Text(said, style="red" if one.stalled else "yellow"), (0, 0, 0, 2)))
    parts += [Text(), *(Hanging(Text(fact), LABEL) for fact in _facts(one, pods, now))]
    for title, table in (
        ("Conditions", _conditions(one, now)),
        ("Pods", pod_table(pods, now)),
        ("Last events", event_table(events[-LAST_EVENTS:], now)),
    ):
        if table.row_count:
            parts += [Text(), Text(title, style="bold"), Padding(table, (0, 0, 0, 2))]
    return Group(*parts)


def _facts(one: ConsumerView, pods: Sequence[PodView], now: datetime) -> list[str]:
    figures, driver = one.figures, one.driver
    facts = [f"stream     {one.stream} in {one.region}; table {one.table}"]
    if figures.reported:
        open_ = "none open" if figures.open_batch is None else f"{figures.open_batch} open since {age(figures.batch_at, now)}"
        work = f"batch {number(figures.batch)} committed, {open_}"
        facts.append(f"behind     {lag(figures, now)}; {number(figures.records_per_second)} records/s; {work}")
        facts.append(
            f"shards     {number(figures.open_shards)} open, {number(figures.ended_shards)} ended, {number(figures.held_shards)} held by the driver"
        )
        if figures.dead_letters:
            facts.append(f"letters    {counted(figures.dead_letters, 'record')} left out so far{_letters(one)}")
    if driver.attempt:
        facts.append(f"driver     attempt {driver.attempt}, {driver.pod or 'no pod'}, since {age(driver.started, now)}{_stopping(one)}")
    if driver.exit_reason:
        code = f" (exit {driver.exit_code})" if driver.exit_code is not None else ""
        facts.append(f"last end   {driver.exit_reason}{code} {age(driver.exit_at, now)} ago: {driver.exit_message or 'no message'}")
    if one.failures or one.next_start:
        due = f"; next driver at {clock(one.next_start, now)}" if one.next_start else ""
        facts.append(f"failures   {one.failures} since the last stable run{due}")
    if one.migration:
        due = f"; next try at {clock(one.next_migration, now)}" if one.next_migration else ""
        facts.append(f"migration  {one.migration}{due}")
    if step := next_step(one, pods):
        facts.append(f"next       {step}")
    return facts


def _letters(one: ConsumerView) -> str:
    if one.letters is None:
        return ""
    kind, _, place = one.letters.partition(" ")
    return f", to {place}; next: dead-letters list {one.name}" if kind == "path" else f", to {one.letters}"


def _stopping(one: ConsumerView) -> str:
    parts = [f"stopping: {one.driver.stopping}"] if one.driver.stopping else []
    parts += [f"{one.driver.leaving} is leaving"] if one.driver.leaving else []
    return "".join(f"; {part}" for part in parts)


def _conditions(one: ConsumerView, now: datetime) -> Table:
    table = grid("condition", "status", "since", "reason", "message", wraps="message")
    for each in one.conditions:
        if each.speaks and each.type != "Ready":
            row(table, each.type, each.status, age(each.since, now), each.reason, each.message)
    return table


def pod_table(pods: Sequence[PodView], now: datetime) -> Table:
    """One line a pod."""
    table = grid("pod", "role", "state", "ready", "restarts", "node", "age")
    for pod in pods:
        state = "; ".join([f"{pod.state}, leaving" if pod.leaving else pod.state, *unreadable(pod.unreadable)])
        row(table, pod.name, pod.role, state, "yes" if pod.ready else "no", str(pod.restarts), pod.node, age(pod.created, now))
    return table


def event_table(events: Sequence[EventView], now: datetime) -> Table:
    """One line an event, the newest last, where the eye is."""
    table = grid("ago", "type", "reason", "message", wraps="message")
    for event in events:
        kind = Text("Warning", style="yellow") if event.warning else Text("Normal")
        times = f" (x{event.count})" if event.count > 1 else ""
        row(table, age(event.at, now), kind, event.reason, "; ".join([event.message + times, *unreadable(event.unreadable)]))
    return table
