"""The command line. Kept stable: options are added, never renamed or narrowed (docs/interfaces.md)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from sluice_checkpoints.cli import adopt as cli_adopt
from sluice_checkpoints.cli import dead_letters as cli_letters
from sluice_checkpoints.cli import diagnose as cli_diagnose
from sluice_checkpoints.cli import export as cli_export
from sluice_checkpoints.cli import migrate as cli_migrate
from sluice_checkpoints.cli import options as cli_options
from sluice_checkpoints.cli import report
from sluice_checkpoints.cli import show as cli_show
from sluice_checkpoints.cli.guard import guarded
from sluice_checkpoints.formats.detect import AUTO, FORMATS
from sluice_checkpoints.formats.writers import WRITERS
from sluice_checkpoints.letters.folder import folder
from sluice_checkpoints.migrate.placement import FROM_NOW, FROM_START

Command = Callable[..., None]


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator."""

    def decorated(command: Command) -> Command:
        for option in options:
            command = option(command)
        return command

    return decorated


AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout and nothing else there.")
_shared = _options(
    AS_JSON,
    click.option("--dynamodb-endpoint", callback=cli_options.parse_url, metavar="URL", help="Another DynamoDB than AWS's own."),
    click.option("--region", required=True, callback=cli_options.parse_region, help="AWS region of tables and stream."),
)
_letters = _options(
    AS_JSON,
    click.option("--s3-endpoint", callback=cli_options.parse_url, metavar="URL", help="Another S3 than AWS's own."),
    click.option("--region", help="AWS region of the bucket."),
    click.option("--path", required=True, help="As in onError.deadLetter.path: s3a://bucket/folder, or a folder here. No queue, no stream."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
def main() -> None:
    """Checkpoint tables of Kinesis consumers: take over another system's, look at ours.

    Exit codes: 0 done · 65 data, request or access refused: somebody has to act, and no consumer starts on what was written so far · 75 the source,
    or another migrator, is at work: come again later · 2 wrong usage · 1 anything else, above all no answer in time: run it again (diagnose:
    records are or will be lost).
    """


@main.command()
@click.option("--source", required=True, metavar="TABLE", help="The other system's table. It is only read.")
@click.option("--stream", required=True, metavar="NAME", help="The Kinesis stream both are about.")
@click.option("--target", required=True, metavar="TABLE", help="Our table: made if it does not exist, never deleted.")
@click.option(
    "--format", "format_", default=AUTO, type=click.Choice([AUTO, *(f.name for f in FORMATS)]), show_default=True, help="What wrote the source."
)
@click.option(
    "--unstarted",
    type=click.Choice([FROM_START, FROM_NOW], case_sensitive=False),
    help="Where shards start that were never acknowledged, or that nothing in the source accounts for. Unless given, the former start at their "
    "beginning and the latter are refused.",
)
@click.option("--quiet-seconds", type=cli_options.Seconds(0), help="How long the source must not move.  [default: what its format needs; kcl 60]")
@click.option("--lease-seconds", type=cli_options.Seconds(1), default=30, show_default=True, help="Lease of this migrator's claim on the target.")
@click.option(
    "--timestamp", callback=cli_options.parse_time, metavar="ISO", help="Where rows start that say AT_TIMESTAMP, for example 2026-11-21T10:00:00Z."
)
@click.option(
    "--ignore-attribute",
    multiple=True,
    callback=cli_options.parse_names,
    metavar="NAME",
    help="Read rows as if they had no attribute NAME. Repeatable. Only for attributes that the format does not know and that hold no place.",
)
@click.option(
    "--place",
    multiple=True,
    callback=cli_options.parse_places,
    metavar="SHARD=PLACE",
    help="Start SHARD at PLACE, whatever its row says: trim-horizon, END, or the sequence number of the last record that was read. Repeatable.",
)
@click.option("--kinesis-endpoint", callback=cli_options.parse_url, metavar="URL", help="Another Kinesis than AWS's own.")
@click.option(
    "--dry-run", is_flag=True, help="Only read: print the plan, shard by shard. With --quiet-seconds it also checks that the source is at rest."
)
@_shared
def migrate(**options: Any) -> None:
    """Take over where another consumer stopped: every shard of STREAM continues at the place that SOURCE says."""
    as_json = options.pop("as_json")
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_migrate.run(cli_migrate.MigrateOptions(**options), output)))


@main.command()
@click.option("--table", required=True, help="A checkpoint table of Sluice.")
@_shared
def show(table: str, region: str, dynamodb_endpoint: str | None, *, as_json: bool) -> None:
    """The position of each shard of a consumer."""
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_show.run(table, region, dynamodb_endpoint, output), terminal=False, to_be_read=True))


@main.command()
@click.option("--table", required=True, help="A checkpoint table of Sluice: one that was restored from a backup or replicated, or with --owner any.")
@click.option(
    "--owner",
    callback=cli_options.parse_owner,
    metavar="NAMESPACE/NAME",
    help="The KinesisConsumer that the table is to belong to. The driver of its former owner must have stopped.",
)
@click.option(
    "--cluster",
    callback=cli_options.parse_cluster,
    metavar="ID",
    help="The cluster of --owner, as its driver's refusal names it.  [default: any]",
)
@_shared
def adopt(**options: Any) -> None:
    """Make a copied table a consumer of its own, so that drivers accept it: it gets a new consumer id, and keeps its positions.

    With --owner, hand a table over to another KinesisConsumer. A table that is no copy keeps its consumer id, and its sink goes on.
    """
    output = report.Output(as_json=options.pop("as_json"))
    if options["cluster"] and not options["owner"]:
        raise click.UsageError("Option '--cluster' needs '--owner'.")
    sys.exit(guarded(output, lambda: cli_adopt.run(cli_adopt.AdoptOptions(**options), output), terminal=False))


@main.command()
@click.option("--table", required=True, help="A checkpoint table of any system that can be migrated, or of Sluice.")
@click.option("--stream", required=True, metavar="NAME", help="The Kinesis stream it is about.")
@click.option(
    "--format", "format_", default=AUTO, type=click.Choice([AUTO, *(f.name for f in FORMATS)]), show_default=True, help="What wrote the table."
)
@click.option(
    "--initial-position",
    type=click.Choice(cli_diagnose.INITIAL, case_sensitive=False),
    help="Where its system is configured to start a shard that its table says nothing about.  [default: not known, the worse is assumed]",
)
@click.option("--records/--no-records", default=True, help="Ask Kinesis for each shard's oldest record: has retention passed a checkpoint?")
@click.option("--kinesis-endpoint", callback=cli_options.parse_url, metavar="URL", help="Another Kinesis than AWS's own.")
@_shared
def diagnose(**options: Any) -> None:
    """What is wrong with a checkpoint table, its own system's or Sluice's. Only reads.

    Exit codes: 0 no loss is certain, whatever is suspected or warned of · 1 records are or will be lost ·
    65 no such table or stream, or no known format.
    """
    output = report.Output(as_json=options.pop("as_json"))
    sys.exit(guarded(output, lambda: cli_diagnose.run(cli_diagnose.DiagnoseOptions(**options), output), terminal=False))


@main.command()
@click.option("--format", "format_", required=True, type=click.Choice(list(WRITERS)), help="The system that goes on.")
@click.option("--table", required=True, help="Sluice's table. Its consumer must be suspended. Nothing starts on it again afterwards.")
@click.option("--to", required=True, metavar="TABLE", help="The other system's table, usually the one that was migrated; made if it does not exist.")
@click.option("--stream", required=True, metavar="NAME", help="The Kinesis stream both are about.")
@click.option("--quiet-seconds", type=cli_options.Seconds(0), help="How long TO must not move.  [default: what its format needs; kcl 60]")
@click.option("--lease-seconds", type=cli_options.Seconds(1), default=60, show_default=True, help="Lease on TABLE while this program works.")
@click.option("--kinesis-endpoint", callback=cli_options.parse_url, metavar="URL", help="Another Kinesis than AWS's own.")
@click.option("--dry-run", is_flag=True, help="Only read: print the plan, shard by shard. With --quiet-seconds it also checks that TO is at rest.")
@_shared
def export(**options: Any) -> None:
    """Give a stream back: TO gets the positions of the consumer of TABLE, and its old system continues from there. No row of TO is lowered."""
    output = report.Output(as_json=options.pop("as_json"))
    sys.exit(guarded(output, lambda: cli_export.run(cli_export.ExportOptions(**options), output)))


@main.group("dead-letters")
def dead_letters() -> None:
    """Records on which `process` raised: what spec.onError left out (docs/dead-letters.md)."""


@dead_letters.command("list")
@click.option("--consumer", metavar="ID", help="Only those of this consumerId.")
@_letters
def list_letters(path: str, region: str | None, s3_endpoint: str | None, consumer: str | None, *, as_json: bool) -> None:
    """A line a letter."""
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_letters.list_(folder(path, region, s3_endpoint), consumer, output), terminal=False, to_be_read=True))


@dead_letters.command("show")
@click.argument("name")
@_letters
def show_letter(path: str, region: str | None, s3_endpoint: str | None, name: str, *, as_json: bool) -> None:
    """One letter, by the name that `list` has: the record and its exception."""
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_letters.show(folder(path, region, s3_endpoint), name, output), terminal=False, to_be_read=True))
