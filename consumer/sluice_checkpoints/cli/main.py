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
from sluice_checkpoints.cli import reset as cli_reset
from sluice_checkpoints.cli import show as cli_show
from sluice_checkpoints.cli.guard import guarded
from sluice_checkpoints.cli.options import stream_options
from sluice_checkpoints.formats.detect import AUTO, FORMATS, WRITERS
from sluice_checkpoints.letters.folder import folder
from sluice_checkpoints.migrate.placement import FROM_NOW, FROM_START

Command = Callable[..., None]


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorated(command: Command) -> Command:
        for option in options:
            command = option(command)
        return command

    return decorated


AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else.")
_shared = _options(
    AS_JSON,
    click.option(
        "--dynamodb-endpoint", is_eager=True, callback=cli_options.parse_url, metavar="URL", help="Address of DynamoDB, if it is not AWS's own."
    ),
    click.option("--region", required=True, callback=cli_options.parse_region, help="AWS region of the tables and the stream."),
)
_letters = _options(
    AS_JSON,
    click.option("--s3-endpoint", callback=cli_options.parse_url, metavar="URL", help="Address of S3, if it is not AWS's own."),
    click.option("--region", help="AWS region of the bucket."),
    click.option("--path", required=True, help="Folder of the dead letters, as in onError.deadLetter.path: s3a://bucket/folder, or a local folder."),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
def main() -> None:
    """Migrate, inspect and export checkpoint tables of Kinesis consumers.

    Exit codes: 0 done · 65 data, request or access refused: you have to act, and no consumer starts on what was written so far · 75 the source
    is in use, or another migration is running: try again later · 2 wrong usage · 1 anything else, mostly no answer in time: run it again.
    For diagnose, 1 means that records are or will be lost.
    """


@main.command()
@click.option("--source", required=True, metavar="TABLE", help="Table of the other system. It is only read.")
@stream_options("Kinesis stream of both tables.")
@click.option("--target", required=True, metavar="TABLE", help="Table of Sluice. It is created if it does not exist, and never deleted.")
@click.option(
    "--format",
    "format_",
    default=AUTO,
    type=click.Choice([AUTO, *(f.name for f in FORMATS)]),
    show_default=True,
    help="System that wrote the source.",
)
@click.option(
    "--unstarted",
    type=click.Choice([FROM_START, FROM_NOW], case_sensitive=False),
    help="Where to start a shard that the source never checkpointed or does not list. If omitted, a shard that was never checkpointed starts at "
    "TRIM_HORIZON, and a shard that is not listed stops the migration.",
)
@click.option(
    "--quiet-seconds", type=cli_options.Seconds(0), help="Time during which the source must not change.  [default: depends on the format; kcl 60]"
)
@click.option(
    "--lease-seconds", type=cli_options.Seconds(1), default=30, show_default=True, help="Lease duration of this migration's claim on the target."
)
@click.option(
    "--timestamp",
    callback=cli_options.parse_time,
    metavar="ISO",
    help="Start time for rows whose checkpoint is AT_TIMESTAMP, for example 2026-11-21T10:00:00Z.",
)
@click.option(
    "--ignore-attribute",
    multiple=True,
    callback=cli_options.parse_names,
    metavar="NAME",
    help="Ignore the attribute NAME of all rows. Repeatable. Only for attributes that the format does not know and that hold no position.",
)
@click.option(
    "--ignore-row",
    multiple=True,
    callback=cli_options.parse_names,
    metavar="KEY",
    help="Ignore the row KEY, which holds no position of this stream. Repeatable. Only for rows that are not those of a shard that the stream lists.",
)
@click.option(
    "--place",
    multiple=True,
    callback=cli_options.parse_places,
    metavar="SHARD=PLACE",
    help="Start SHARD at PLACE, whatever its row says. PLACE is trim-horizon, END, or the sequence number of the last record read. Repeatable.",
)
@click.option("--tag", multiple=True, callback=cli_options.parse_tags, metavar="NAME=VALUE", help="Tag of the target, if it is created. Repeatable.")
@click.option("--kms-key", metavar="ARN", help="KMS key that encrypts the target, if it is created.  [default: DynamoDB's own key]")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan, shard by shard, and write nothing. With --quiet-seconds, also check that nothing writes to the source.",
)
@_shared
def migrate(**options: Any) -> None:
    """Migrate from another consumer: copy the position of every shard of STREAM from SOURCE to TARGET."""
    as_json = options.pop("as_json")
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_migrate.run(cli_migrate.MigrateOptions(**options), output)))


@main.command()
@click.option("--table", required=True, help="Checkpoint table of Sluice.")
@_shared
def show(table: str, region: str, dynamodb_endpoint: str | None, *, as_json: bool) -> None:
    """Show the position of each shard of a consumer."""
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_show.run(table, region, dynamodb_endpoint, output), terminal=False, to_be_read=True))


@main.command()
@click.option("--table", required=True, help="Checkpoint table of Sluice that was restored from a backup or replicated. With --owner, any of them.")
@click.option(
    "--owner",
    callback=cli_options.parse_owner,
    metavar="NAMESPACE/NAME",
    help="KinesisConsumer that becomes the owner of the table. The driver of the former owner must have stopped.",
)
@click.option(
    "--cluster",
    callback=cli_options.parse_cluster,
    metavar="ID",
    help="Cluster of --owner, as its driver's refusal names it.  [default: any]",
)
@_shared
def adopt(**options: Any) -> None:
    """Make a copied table a separate consumer, so that drivers accept it. It gets a new consumer id, and keeps its positions.

    With --owner, hand a table over to another KinesisConsumer. If the table is not a copy, it keeps its consumer id, and its sink continues.
    """
    output = report.Output(as_json=options.pop("as_json"))
    if options["cluster"] and not options["owner"]:
        raise click.UsageError("Option '--cluster' needs '--owner'.")
    sys.exit(guarded(output, lambda: cli_adopt.run(cli_adopt.AdoptOptions(**options), output), terminal=False))


@main.command()
@click.option("--table", required=True, help="Checkpoint table of any system that can be migrated, or of Sluice.")
@stream_options("Kinesis stream of the table.")
@click.option(
    "--format", "format_", default=AUTO, type=click.Choice([AUTO, *(f.name for f in FORMATS)]), show_default=True, help="System that wrote the table."
)
@click.option(
    "--initial-position",
    type=click.Choice(cli_diagnose.INITIAL, case_sensitive=False),
    help="Where the other system is configured to start a shard that its table does not list.  [default: the worse case is assumed]",
)
@click.option(
    "--records/--no-records", default=True, help="Ask Kinesis for each shard's oldest record, to find checkpoints that retention has passed."
)
@_shared
def diagnose(**options: Any) -> None:
    """Diagnose a checkpoint table of Sluice or of another system. Nothing is written.

    Exit codes: 0 no finding proves a loss, whatever the warnings · 1 records are or will be lost ·
    65 no such table or stream, or an unknown format.
    """
    output = report.Output(as_json=options.pop("as_json"))
    sys.exit(guarded(output, lambda: cli_diagnose.run(cli_diagnose.DiagnoseOptions(**options), output), terminal=False))


@main.command()
@click.option("--format", "format_", required=True, type=click.Choice(list(WRITERS)), help="System that continues.")
@click.option("--table", required=True, help="Table of Sluice. Its consumer must be suspended. Nothing starts on the table again afterwards.")
@click.option(
    "--to", required=True, metavar="TABLE", help="Table of the other system, usually the one that was migrated. It is created if it does not exist."
)
@stream_options("Kinesis stream of both tables.")
@click.option("--quiet-seconds", type=cli_options.Seconds(0), help="Time during which TO must not change.  [default: depends on the format; kcl 60]")
@click.option("--lease-seconds", type=cli_options.Seconds(1), default=60, show_default=True, help="Lease duration on TABLE while this program works.")
@click.option(
    "--dry-run", is_flag=True, help="Print the plan, shard by shard, and write nothing. With --quiet-seconds, also check that nothing writes to TO."
)
@_shared
def export(**options: Any) -> None:
    """Hand the stream back: copy the positions in TABLE to table TO, so that the previous system continues from there.

    No position in TO is moved backwards.
    """
    output = report.Output(as_json=options.pop("as_json"))
    sys.exit(guarded(output, lambda: cli_export.run(cli_export.ExportOptions(**options), output)))


@main.command()
@click.option("--table", required=True, help="Checkpoint table of Sluice. Its consumer must be suspended.")
@stream_options("Kinesis stream of the table.")
@click.option(
    "--to",
    callback=cli_reset.parse_target,
    metavar="POSITION",
    help="Position from which records are delivered: trimHorizon, latest, or a time such as 2026-11-27T10:00:00Z.",
)
@click.option(
    "--to-batch",
    type=click.IntRange(1),
    metavar="N",
    help="First batch of a version, as `show` lists it: positions as they were in front of batch N.",
)
@click.option(
    "--from-file",
    metavar="FILE",
    help="File with a position for each shard: what `show --json` prints, edited. It is refused if positions have moved since.",
)
@click.option("--id", "id_", metavar="ID", help="Name of this reset. Each id is carried out once; run the command again with it after a failure.")
@click.option(
    "--shard",
    multiple=True,
    callback=cli_options.parse_shards,
    metavar="SHARD",
    help="Move this shard only. Repeatable. Shards that follow it in the stream must be named as well.  [default: all shards]",
)
@click.option(
    "--give-up-batch",
    type=click.IntRange(1),
    metavar="N",
    help="Count the open batch N as processed. If a batch is open, nothing is moved without this option.",
)
@click.option("--accept-expired", is_flag=True, help="Begin at the oldest record if the time in --to lies before it.")
@click.option("--lease-seconds", type=cli_options.Seconds(1), default=60, show_default=True, help="Lease duration on TABLE while this program works.")
@click.option("--dry-run", is_flag=True, help="Print the plan, shard by shard, and write nothing.")
@click.option("--yes", is_flag=True, help="Carry the plan out.")
@_shared
def reset(**options: Any) -> None:
    """Move the positions of a consumer: read records again, or pass over some. Records that come again have new batch numbers.

    Give one of --to, --to-batch and --from-file, and either --dry-run or --yes.
    """
    output = report.Output(as_json=options.pop("as_json"))
    if sum(options[target] is not None for target in ("to", "to_batch", "from_file")) != 1:
        raise click.UsageError("Give one of '--to', '--to-batch' and '--from-file'.")
    if options["from_file"] and options["shard"]:
        raise click.UsageError("Option '--shard' is not for '--from-file': edit the shards that are to be moved.")
    if options["dry_run"] == options["yes"]:
        raise click.UsageError("Give either '--dry-run' or '--yes'.")
    sys.exit(guarded(output, lambda: cli_reset.run(cli_reset.ResetOptions(**options), output)))


@main.group("dead-letters")
def dead_letters() -> None:
    """List and show dead letters: records that spec.onError left out (docs/dead-letters.md)."""


@dead_letters.command("list")
@click.option("--consumer", metavar="ID", help="Consumer id whose dead letters are listed.  [default: all]")
@_letters
def list_letters(path: str, region: str | None, s3_endpoint: str | None, consumer: str | None, *, as_json: bool) -> None:
    """List dead letters, by their error."""
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_letters.list_(folder(path, region, s3_endpoint), consumer, output), terminal=False, to_be_read=True))


@dead_letters.command("show")
@click.argument("name")
@_letters
def show_letter(path: str, region: str | None, s3_endpoint: str | None, name: str, *, as_json: bool) -> None:
    """Show one dead letter, by its name in `list`: the record and its exception."""
    output = report.Output(as_json=as_json)
    sys.exit(guarded(output, lambda: cli_letters.show(folder(path, region, s3_endpoint), name, output), terminal=False, to_be_read=True))
