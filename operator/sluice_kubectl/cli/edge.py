"""What every command shares: options of the cluster, output, and errors as exit codes."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.text import Text

from sluice_kubectl.api import kubeconfig
from sluice_kubectl.api.errors import REFUSED, CommandError
from sluice_kubectl.api.person import Person
from sluice_kubectl.api.streams import HttpPodTexts
from sluice_kubectl.views.actions import NotOffered
from sluice_operator.names import printable

Command = Callable[..., Any]
WIDTH = 150  # of a file or a pipe; a terminal says its own


@dataclass
class Terminal:
    """The person's cluster, a clock, where output goes, and a person to `ask`, if there is a terminal. Tests put their own into click's `obj`."""

    connect: Callable[[kubeconfig.Target], Person]
    now: Callable[[], datetime]
    out: Console
    log: Console
    ask: Callable[[str], bool] | None = None

    def document(self, document: Any) -> None:
        """One JSON document on stdout."""
        self.out.file.write(json.dumps(document, indent=2) + "\n")

    def show(self, screen: RenderableType) -> None:
        """A screen on stdout."""
        self.out.print(screen)

    def say(self, text: str) -> None:
        """One line on stdout."""
        self.out.print(Text(printable(text)), soft_wrap=True)

    def tell(self, text: str | Text) -> None:
        """One line on stderr."""
        self.log.print(Text(printable(text)) if isinstance(text, str) else text, soft_wrap=True)


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, emoji=False, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, emoji=False, highlight=False, width=WIDTH)


def terminal() -> Terminal:
    """The real one."""
    ask = functools.partial(click.confirm, err=True) if sys.stdin.isatty() else None
    return Terminal(_person, lambda: datetime.now(UTC), _console(), _console(stderr=True), ask)


def _person(target: kubeconfig.Target) -> Person:
    api, namespace = kubeconfig.connect(target)
    return Person(kubeconfig.server(api), HttpPodTexts(api), namespace)


OUTPUT = click.option("-o", "--output", type=click.Choice(["json"]), help="Output format: json prints one document instead of a table.")
NAMESPACES = click.option("-A", "--all-namespaces", is_flag=True, help="Include the consumers of all namespaces.")
NAME = click.argument("name")
_CLUSTER = (
    click.option("--kubeconfig", metavar="FILE", help="Path of the kubeconfig, instead of $KUBECONFIG or ~/.kube/config."),
    click.option("--context", "context_", metavar="NAME", help="Context of the kubeconfig."),
    click.option("-n", "--namespace", metavar="NAME", help="Namespace, instead of that of the context."),
)


def command(function: Command) -> click.Command:
    """A command of a cluster: called with the session and the person's cluster, its errors are exit codes."""

    @click.pass_context
    @functools.wraps(function)
    def run(context: click.Context, /, kubeconfig: str | None, context_: str | None, namespace: str | None, **options: Any) -> None:
        at = context.obj if isinstance(context.obj, Terminal) else terminal()
        target = _target(kubeconfig, context_, namespace, every=bool(options.get("all_namespaces")))
        try:
            function(at, at.connect(target), **options)
        except (CommandError, NotOffered) as error:
            code = error.code if isinstance(error, CommandError) else REFUSED
            at.tell(Text.assemble((type(error).__name__, "red"), f" (exit {code}) {printable(str(error))}"))
            sys.exit(code)

    for option in _CLUSTER:
        run = option(run)
    return click.command()(run)


def _target(file: str | None, context: str | None, namespace: str | None, *, every: bool) -> kubeconfig.Target:
    if namespace and every:
        raise click.UsageError("--namespace and --all-namespaces exclude each other")
    return kubeconfig.Target(file, context, namespace, every)
