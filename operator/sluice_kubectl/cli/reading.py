"""`status`, `lag`, `shards`, `events`, `logs`: commands that only read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from sluice_kubectl.api.errors import CommandError, NothingThere
from sluice_kubectl.api.person import Person
from sluice_kubectl.api.streams import LogRequest
from sluice_kubectl.cli import tables
from sluice_kubectl.cli.edge import NAME, NAMESPACES, OUTPUT, Terminal, command
from sluice_kubectl.screens.fleet import fleet, lags, pool_list, shard_screen
from sluice_kubectl.screens.one import event_table, one_consumer
from sluice_kubectl.screens.words import Hanging
from sluice_kubectl.views.consumer import ConsumerView, by_need, consumer
from sluice_kubectl.views.consumer import dynamodb_endpoint as endpoint_of
from sluice_kubectl.views.documents import document
from sluice_kubectl.views.objects import PodView, events, pods, standby_of
from sluice_kubectl.views.part import uid_of
from sluice_kubectl.views.pool import PoolView, pool, pools_by_need
from sluice_kubectl.views.shards import ShardFigures, figures, shards
from sluice_operator.names import printable

Json = dict[str, Any]
EVERY = 2.0  # seconds between two looks of -w


@command
@click.argument("name", required=False)
@NAMESPACES
@OUTPUT
@click.option("--pools", "only_pools", is_flag=True, help="List the pools of consumers instead of the consumers.")
@click.option("-w", "--watch", is_flag=True, help="Refresh the screen every two seconds.")
def status(at: Terminal, person: Person, name: str | None, output: str | None, **flags: bool) -> None:
    """List all consumers, those that need attention first; or show one, with its conditions, pods and last events."""
    _refuse_nonsense(name, output, flags)

    def render() -> RenderableType:
        return _only_pools(person) if flags["only_pools"] else _screen(at, person, name)

    if flags["watch"]:
        live(at, render, ticks())
    elif not output:
        at.show(render())
    elif name:
        at.document(_one_document(person, name))
    else:
        at.document([document(view) for view in (_pools(person) if flags["only_pools"] else _all(person))])


def _refuse_nonsense(name: str | None, output: str | None, flags: Mapping[str, bool]) -> None:
    if name and flags["all_namespaces"]:
        raise click.UsageError("a NAME and --all-namespaces exclude each other: name its namespace with -n")
    if name and flags["only_pools"]:
        raise click.UsageError("a NAME and --pools exclude each other: the NAME is that of a consumer")
    if flags["watch"] and output:
        raise click.UsageError("--watch and --output exclude each other")


def ticks() -> Iterator[None]:
    """One each time that a look is due; the first at once."""
    while True:
        yield
        time.sleep(EVERY)


def live(at: Terminal, render: Any, due: Iterator[None]) -> None:
    """Looks again and again until the person ends it. A failure to get an answer is shown below the last screen."""
    shown: RenderableType = Text("…")
    with Live(shown, console=at.out, screen=at.out.is_terminal, auto_refresh=False) as view:
        try:
            for _ in due:
                try:
                    shown = render()
                    view.update(shown, refresh=True)
                except NothingThere:
                    raise
                except CommandError as error:
                    view.update(Group(shown, Text(), Hanging(Text(f"{at.now():%H:%M:%S}Z {printable(str(error))}", style="red"))), refresh=True)
        except KeyboardInterrupt:
            return


def _all(person: Person) -> tuple[ConsumerView, ...]:
    return by_need(map(consumer, person.consumers()))


def _screen(at: Terminal, person: Person, name: str | None) -> RenderableType:
    if name is None:
        there = fleet(_all(person), at.now(), namespaces=not person.namespace)
        below = _pools_below(person)
        return Group(there, Text(), below) if below else there
    body = person.consumer(name)
    return one_consumer(consumer(body), _pods(person, body), events(person.events(uid_of(body))), at.now())


def _pools(person: Person) -> tuple[PoolView, ...]:
    return pools_by_need(map(pool, person.pools()))


def _only_pools(person: Person) -> RenderableType:
    return pool_list(_pools(person), namespaces=not person.namespace)


def _pools_below(person: Person) -> RenderableType | None:
    """Below the consumers. Who may not list pools sees the consumers all the same."""
    try:
        views = _pools(person)
    except NothingThere as error:
        return Hanging(Text(f"pools are not shown: {printable(str(error))}"))
    return pool_list(views, namespaces=not person.namespace) if views else None


def _pods(person: Person, body: Json) -> tuple[PodView, ...]:
    return pods(person.pods_of(body), standby_of(body))


def _one_document(person: Person, name: str) -> Json:
    body = person.consumer(name)
    about = {"pods": _pods(person, body), "events": events(person.events(uid_of(body)))}
    return {**document(consumer(body)), **{key: document(value) for key, value in about.items()}}


@command
@NAMESPACES
@OUTPUT
def lag(at: Terminal, person: Person, output: str | None, *, all_namespaces: bool) -> None:  # noqa: ARG001 - is in `person`
    """List how far each consumer is behind, the farthest first."""
    views = _all(person)
    if output:
        at.document([{"namespace": view.namespace, "name": view.name, **document(view.figures)} for view in views])
    else:
        at.show(lags(views, at.now(), namespaces=not person.namespace))


@command
@NAME
@OUTPUT
@click.option("--table", is_flag=True, help="Also read positions in the checkpoint table, with your AWS credentials.")
@click.option("--dynamodb-endpoint", metavar="URL", help="Address of DynamoDB for --table, if it is not that of the spec.")
def shards_(at: Terminal, person: Person, name: str, output: str | None, *, table: bool, dynamodb_endpoint: str | None) -> None:
    """List lag, position and holder of each shard of one consumer."""
    body = person.consumer(name)
    view, notes = consumer(body), []
    scraped, note = _scraped(person, view.name, _pods(person, body))
    notes += [note] if note else []
    rows = tables.rows(view, dynamodb_endpoint or endpoint_of(body)) if table else None
    if rows is None:
        notes.append("positions are in the checkpoint table: --table reads it, with your AWS credentials")
    shown = shards(scraped, rows, view.driver.pod)
    if output:
        at.document({"namespace": view.namespace, "name": view.name, "shards": document(shown), "notes": notes})
    else:
        at.show(shard_screen(view, shown, notes))


def _scraped(person: Person, name: str, listed: tuple[PodView, ...]) -> tuple[Mapping[str, ShardFigures], str | None]:
    """The driver's figures by shard, or why there are none."""
    driver = next((pod for pod in listed if pod.drives and not pod.leaving), None)
    if driver is None:
        return {}, "lag by shard: no driver runs"
    if driver.metrics_port is None:
        return {}, "lag by shard: the driver serves no metrics; next: the chart's driverMetrics.port=9404, then restart"
    try:
        return figures(tables.samples(person.metrics(driver.name, driver.metrics_port)), name), None
    except CommandError as error:
        return {}, f"lag by shard: {error}"


@command
@NAME
@OUTPUT
def events_(at: Terminal, person: Person, name: str, output: str | None) -> None:
    """List the events of one consumer, newest last."""
    listed = events(person.events(uid_of(person.consumer(name))))
    if output:
        at.document([document(event) for event in listed])
    elif listed:
        at.show(event_table(listed, at.now()))
    else:
        at.tell(f"no events about {name}: the API server forgets them after an hour")


@command
@NAME
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines.")
@click.option("--tail", type=click.IntRange(-1), default=200, show_default=True, help="Number of lines from the end; -1 prints all.")
@click.option("-p", "--previous", is_flag=True, help="Print the log of the container before its last restart.")
@click.option(
    "--role",
    type=click.Choice(["driver", "executor", "migration", "redrive"]),
    default="driver",
    show_default=True,
    help="Whose log: of the driver, of an executor, or of the pod of a migration or a redrive.",
)
@click.option("--pod", metavar="NAME", help="Name of a pod of the consumer, instead of the newest pod of the role.")
def logs(at: Terminal, person: Person, name: str, **options: Any) -> None:
    """Print the log of the driver, or of the newest executor, migration or redrive pod. A driver that stands by is printed with --pod.

    For a consumer in a pool, this is the log of the pool's driver, without the lines that name another consumer. With --pod it is complete.
    """
    wanted = LogOptions(**options)
    listed = _pods(person, person.consumer(name))
    chosen = next((pod for pod in listed if wanted.means(pod)), None)
    if chosen is None:
        there = ", ".join(f"{pod.name} ({pod.role})" for pod in listed) or "none"
        raise NothingThere(f"{name} has no {wanted.sought()}; its pods: {there}; next: status {name}")
    request = LogRequest(chosen.container, None if wanted.tail < 0 else wanted.tail, wanted.previous, wanted.follow)
    for line in person.log(chosen.name, request):
        if chosen.role == "pool" and not wanted.pod and names_another(line, name):
            continue
        at.out.file.write(line + "\n")
        if wanted.follow:
            at.out.file.flush()


def names_another(line: str, consumer: str) -> bool:
    """Whether a line of a driver of several consumers is about another one. Lines of Spark, and those about all of them, name none."""
    if '"consumer"' not in line:
        return False
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("consumer", consumer) != consumer


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The options of `logs`."""

    role: str
    pod: str | None
    tail: int
    follow: bool
    previous: bool

    def means(self, pod: PodView) -> bool:
        """Whether it is this pod, or one of the role."""
        return pod.name == self.pod if self.pod else pod.role == self.role or (pod.drives and self.role == "driver")

    def sought(self) -> str:
        """For a message."""
        return f"pod {self.pod}" if self.pod else f"{self.role} pod"


COMMANDS = {"status": status, "shards": shards_, "lag": lag, "events": events_, "logs": logs}
