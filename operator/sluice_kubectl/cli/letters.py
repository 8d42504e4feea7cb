"""`dead-letters list|show|redrive NAME`: dead letters of a consumer by its resource.

`list` and `show` read the folder from here, so they work while no driver runs: too many dead letters end a driver. `redrive` needs the pipeline and
its rights, so it runs in a pod like the driver's; in the driver's own pod it would share the driver's memory.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from sluice_kubectl.api.errors import CommandError, NothingThere
from sluice_kubectl.api.person import Person
from sluice_kubectl.api.streams import LogRequest
from sluice_kubectl.cli import tables
from sluice_kubectl.cli.edge import NAME, OUTPUT, Terminal, command
from sluice_kubectl.views import letters
from sluice_kubectl.views.actions import NotOffered
from sluice_kubectl.views.consumer import consumer, dynamodb_endpoint
from sluice_kubectl.views.objects import PodView, pods, standby_of
from sluice_kubectl.views.part import name_of, uid_of
from sluice_operator.names import printable

Json = dict[str, Any]
EVERY = 1.0  # seconds between two looks at the pod
_DYNAMODB = click.option("--dynamodb-endpoint", metavar="URL", help="Address of DynamoDB, if it is not that of the spec.")
_S3 = click.option("--s3-endpoint", metavar="URL", help="Address of S3, if it is not that of spec.sparkConf.")


@command
@NAME
@OUTPUT
@_DYNAMODB
@_S3
def list_(at: Terminal, person: Person, name: str, output: str | None, **endpoints: str | None) -> None:
    """List the dead letters of consumer NAME, by their error. With --path, list a folder without a cluster."""
    body = person.consumer(name)
    place = _place(person, body, "list")
    table = tables.rows(consumer(body), endpoints["dynamodb_endpoint"] or dynamodb_endpoint(body))
    if (owner := table["consumerId"]) is None:
        raise NothingThere(f"no driver of {name} has worked yet: its checkpoint table names no consumer, so there are no dead letters")
    tables.LettersReader(place, endpoints["s3_endpoint"]).list(owner, at.out, as_json=bool(output))


@command
@NAME
@click.argument("letter")
@OUTPUT
@_S3
def show(at: Terminal, person: Person, name: str, letter: str, output: str | None, s3_endpoint: str | None) -> None:
    """Show one dead letter of consumer NAME, by its name in `list`: the record and its exception."""
    place = _place(person, person.consumer(name), f"show {letter}")
    tables.LettersReader(place, s3_endpoint).show(letter, at.out, as_json=bool(output))


def _place(person: Person, body: Json, what: str) -> letters.LettersPlace:
    place = letters.letters_place(body)
    if place.path.startswith("file://"):
        driver = next((pod.name for pod in pods(person.pods_of(body), standby_of(body)) if pod.drives), "DRIVER-POD")
        raise letters.in_pod(driver, consumer(body).namespace, place, what)
    return place


@command
@NAME
@click.option(
    "--resume", "how", flag_value="--resume", help="Continue the redrive that has not ended, with the same dead letters and the same number."
)
@click.option("--give-up", "how", flag_value="--give-up", help="End the open redrive without `process`. Its dead letters can be redriven again.")
@click.argument("letter", nargs=-1)
def redrive(at: Terminal, person: Person, name: str, how: str | None, letter: tuple[str, ...]) -> None:
    """Redrive dead letters of consumer NAME: give those LETTERs, or all, to `process` in a pod like the driver's. Each only once."""
    body = person.consumer(name)
    letters.letters_place(body)
    driver = _driver(person, body, shlex.join((*([how] if how else []), *letter)))
    pod = f"{name}-redrive-{at.now():%Y%m%d%H%M%S}"
    made = person.create_pod(letters.redrive_pod(body, driver, pod, (*([how] if how else []), "--", *letter)))
    at.tell(f"{pod} has the image, configuration and permissions of {name_of(driver)}; its log:")
    try:
        code = _followed(at, person, pod, ticks())
    except (KeyboardInterrupt, CommandError):
        at.tell(f"{pod} continues without this command; next: logs {name} --role redrive -f, then kubectl delete pod {pod}")
        raise
    person.delete_pod(pod, uid_of(made))
    if code:
        raise RedriveEnded(f"the dead letters were not redriven: {pod} ended with {code}, and its log above says why", code)


class RedriveEnded(CommandError):
    """The program in the pod ended with this exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def _driver(person: Person, body: Json, arguments: str) -> Json:
    """The pod of the present driver, which may be that of a pool. Where there is none, the same `arguments` do it by hand."""
    name = name_of(body)
    listed = person.pods_of(body)
    chosen: PodView | None = next((pod for pod in pods(listed, standby_of(body)) if pod.drives and not pod.leaving), None)
    if chosen is None:
        command = f"sluice dead-letters redrive --config consumer.json {arguments}".rstrip()
        why = f"{name} has no driver pod, so there is none to copy for a redrive (status {name} says why)"
        raise NotOffered(
            f"{why}; next, in a pod with the consumer's image and service account: {command} (docs/dead-letters.md says what is in that file)"
        )
    return next(body for body in listed if uid_of(body) == chosen.uid)


def ticks() -> Iterator[None]:
    """One each time that a look is due; the first at once."""
    while True:
        yield
        time.sleep(EVERY)


def _followed(at: Terminal, person: Person, pod: str, due: Iterator[None]) -> int:
    """Waits for the pod, prints its log as it comes, and returns its exit code."""
    _until(at, person, pod, due, lambda state: state.started)
    for line in person.log(pod, LogRequest(letters.ROLE, follow=True)):
        at.out.file.write(printable(line) + "\n")
        at.out.file.flush()
    return _until(at, person, pod, due, lambda state: state.exit_code is not None).exit_code or 0


def _until(at: Terminal, person: Person, pod: str, due: Iterator[None], reached: Callable[[letters.RedriveState], bool]) -> letters.RedriveState:
    shown = ""
    for _ in due:
        if (body := person.pod(pod)) is None:
            raise NothingThere(f"{pod} was deleted; next: dead-letters list shows whether its redrive is open")
        state = letters.redrive_state(body)
        if reached(state):
            return state
        if not state.started and state.waits != shown:
            shown = state.waits
            at.tell(f"{pod} waits: {shown}")
    raise CommandError(f"{pod} has not ended")


class LetterCommands(click.Group):
    """Dead letters by resource. With --path or --config the command is that of another package, which needs no cluster."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, resolved, rest = super().resolve_command(ctx, args)
        if any(word.partition("=")[0] in {"--path", "--config"} for word in rest):
            resolved = _without_a_cluster(ctx, str(name))
        return name, resolved, rest


def _without_a_cluster(ctx: click.Context, name: str) -> click.Command:
    """Of the package that has Spark, or of that which only reads; each needs packages that may not be installed."""
    try:
        if name == "redrive":
            from sluice_consumer.__main__ import redrive as by_configuration  # noqa: PLC0415

            return by_configuration
        from sluice_checkpoints.cli.main import dead_letters  # noqa: PLC0415
    except ModuleNotFoundError as error:
        extra = "consumer" if name == "redrive" else "checkpoints"
        ctx.fail(f"--path and --config need the Python package {error.name}; next: install Sluice with its extra {extra}")
    return dead_letters.commands[name]


dead_letters = LetterCommands(
    "dead-letters",
    commands={"list": list_, "show": show, "redrive": redrive},
    help="List, show and redrive dead letters of a consumer. With --path or --config, without a cluster.",
)
COMMANDS: dict[str, click.Command] = {"dead-letters": dead_letters}
