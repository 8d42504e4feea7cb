"""`restart`, `pause`, `resume`, `drain`, `retry`, `force`: commands that write one patch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from rich.text import Text

from sluice_kubectl.api.person import Person
from sluice_kubectl.cli.edge import NAME, Terminal, command
from sluice_kubectl.screens.words import Hanging
from sluice_kubectl.views import actions
from sluice_kubectl.views.documents import stamp
from sluice_kubectl.views.objects import PodView, pods
from sluice_kubectl.views.part import uid_of
from sluice_operator.cluster.port import POOL_KIND

Json = dict[str, Any]
HELP = {
    "pause": "Pause the operator for this consumer: it keeps updating the status but changes nothing. The driver keeps running.",
    "drain": "Stop the driver when its current batch is done. Nothing runs until resume. Positions stay in the checkpoint table.",
    "resume": "Resume a consumer after pause or drain.",
    "restart": "Restart the driver when its current batch is done. If it is waiting after a failure, start it now.",
    "retry": "Retry a migration that failed or is waiting.",
}


def _command(name: str) -> click.Command:
    action = actions.ACTIONS[name]

    def run(at: Terminal, person: Person, name: str) -> None:
        now = stamp(at.now())
        at.say(person.act(name, lambda body: action(body, now)))

    run.__doc__ = HELP[name]
    made = command(NAME(run))
    made.name = name
    return made


@command
@NAME
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def force(at: Terminal, person: Person, name: str, *, yes: bool) -> None:
    """Remove a driver pod and its executors without waiting, because their node is lost.

    A pod that still works is cut off. No record is lost: the next driver waits for the lease to expire, and reads the open batch again.
    For a consumer in a pool, this is the pool's pod, which runs all members of the pool.
    """
    body = person.consumer(name)
    listed = pods(person.pods_of(body))
    late = actions.late_driver(body, [pod.uid for pod in listed if pod.leaving])
    seen = _seen(person, name, late, listed)
    at.log.print(Hanging(Text(_warning(late, seen))))
    if not (yes or _agreed(at, late)):
        raise actions.NotOffered("not done: you did not agree; nothing was written")
    if late.pool:
        at.say(person.act(late.pool, lambda body: actions.force_pool(body, late), POOL_KIND))
    else:
        at.say(person.act(name, lambda body: actions.force(body, late)))


def _seen(person: Person, name: str, late: actions.GivenUp, listed: Iterable[PodView]) -> PodView:
    """The pod, though somebody took its label away.

    Raises:
        NotOffered: it is gone.
    """
    if (pod_seen := next((pod for pod in listed if pod.uid == late.uid), None)) is not None:
        return pod_seen
    body = person.pod(late.pod)
    if body is None or uid_of(body) != late.uid:
        raise actions.NotOffered(f"{late.pod} is already gone: there is nothing to remove; nothing was written; next: status {name}")
    return pods([body])[0]


def _warning(late: actions.GivenUp, seen: PodView) -> str:
    place = f"on node {seen.node}" if seen.node else "on no node"
    state = f"{seen.state}, leaving" if seen.leaving else seen.state
    restart = f"`kubectl annotate kcp {late.pool} --overwrite sluice.dev/restart=VALUE`" if late.pool else "restart"
    doubt = "" if seen.leaving else f" It was not asked to stop yet: {restart} does that without force."
    whose = f" It runs all members of the pool {late.pool}." if late.pool else ""
    cost = "Force removes it and its executors without waiting for their node; their work is cut off, and the next driver reads it again."
    return f"{late.pod} (uid {late.uid}) {place} is {state}.{whose} {cost}{doubt}"


def _agreed(at: Terminal, late: actions.GivenUp) -> bool:
    if at.ask is None:
        raise actions.NotOffered("force asks first, and there is no terminal to ask at; next: repeat it with --yes")
    return at.ask(f"Remove {late.pod} with uid {late.uid}?")


COMMANDS: dict[str, click.Command] = {**{name: _command(name) for name in HELP}, "force": force}
