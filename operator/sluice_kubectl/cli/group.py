"""All commands under one name. A command's module is imported when it is called: `status` loads no Spark, and `migrate` no Kubernetes.

Commands that are not installed are left out of the help. The help, and an attempt to call one, say how to install them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import click

from sluice_kubectl import INSTALL

DISTRIBUTION = "sluice-kinesis"


@dataclass(frozen=True, slots=True)
class CommandSource:
    """Where commands come from: the extra that they need, a module, its object with the commands, and their names.

    Attributes:
        needs: packages of the extra that a command imports only when it runs.
    """

    extra: str
    module: str
    holder: str
    names: tuple[str, ...]
    needs: tuple[str, ...] = ()

    def load(self) -> Mapping[str, click.Command]:
        """The commands.

        Raises:
            ModuleNotFoundError: a package of the extra is not installed.
        """
        for package in self.needs:
            if find_spec(package) is None:
                raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        holder = getattr(import_module(self.module), self.holder)
        commands: Mapping[str, click.Command] = holder.commands if isinstance(holder, click.Group) else holder
        return {name: commands[name] for name in self.names}


SOURCES = (
    CommandSource("kubectl", "sluice_kubectl.cli.reading", "COMMANDS", ("status", "shards", "lag", "events", "logs")),
    CommandSource("kubectl", "sluice_kubectl.cli.acting", "COMMANDS", ("restart", "pause", "resume", "drain", "retry", "force")),
    CommandSource("kubectl", "sluice_kubectl.cli.reporting", "COMMANDS", ("report",)),
    CommandSource("checkpoints", "sluice_checkpoints.cli.main", "main", ("migrate", "export", "reset", "diagnose", "show", "adopt", "dead-letters")),
    CommandSource("consumer", "sluice_consumer.__main__", "COMMANDS", ("run", "dev", "rollback-sink"), needs=("pyspark",)),
)


BY_RESOURCE = (  # of tables and folders, but also by manifest or resource; used where they can be had
    CommandSource("kubectl", "sluice_kubectl.cli.planning", "COMMANDS", ("migrate",)),
    CommandSource("kubectl", "sluice_kubectl.cli.letters", "COMMANDS", ("dead-letters",)),
)


class LazyGroup(click.Group):
    """A group whose commands are loaded one module at a time."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        source = next((candidate for candidate in SOURCES if cmd_name in candidate.names), None)
        if source is None:
            return None
        try:
            better = next((candidate for candidate in BY_RESOURCE if cmd_name in candidate.names and _missing(candidate) is None), source)
            return better.load()[cmd_name]
        except ModuleNotFoundError as error:
            ctx.fail(f"{cmd_name} needs the Python package {error.name}; next: install Sluice with its extra {source.extra} ({INSTALL})")

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """See click. A name that is almost a command's is refused with that command."""
        names = [name for source in SOURCES for name in source.names]
        if args[0] not in names and (close := difflib.get_close_matches(args[0], names, 1)):
            ctx.fail(f"there is no command {args[0]!r}; did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Those that can be loaded here."""
        return [name for source in SOURCES if _missing(source) is None for name in source.names]

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What is not here, and how to get it."""
        for source in SOURCES:
            if missing := _missing(source):
                formatter.write_paragraph()
                formatter.write_text(
                    f"Not here: {', '.join(source.names)}. Needs {missing} and more: install Sluice with its extra {source.extra} ({INSTALL})"
                )


def _missing(source: CommandSource) -> str | None:
    try:
        source.load()
    except ModuleNotFoundError as error:
        return error.name
    return None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name=DISTRIBUTION, message="%(version)s")
def program() -> None:
    """Run PySpark consumers of Amazon Kinesis that never lose their place in the stream.

    Inspect and control the consumers of a cluster, inspect checkpoint tables, or run a consumer. Exit codes of commands for a cluster: 0 done ·
    65 refused, and the message says what to do · 75 the resource changed: try again · 1 no answer · 2 wrong usage.
    """
