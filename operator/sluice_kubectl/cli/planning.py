"""`migrate --plan FILE`: the migration that a KinesisConsumer's manifest asks for, as a plan. It reads tables and writes nothing.

The options are those of the operator's Job (`sluice_operator.apply.jobs`), so a plan is of what would run.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import click
import yaml

from sluice_checkpoints.cli.main import main as checkpoints
from sluice_operator.apply.jobs import migration_arguments
from sluice_operator.cluster.port import CONSUMER_KIND
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import InvalidSpec, parse
from sluice_operator.state.objects import Resource

Json = dict[str, Any]
DEFAULT_NAMESPACE = "default"


def options(manifest: Json) -> dict[str, str]:
    """The Job's options by their names on the command line.

    Raises:
        InvalidSpec: the operator would refuse the spec.
        ValueError: the manifest has no migrateFrom.
    """
    meta, raw = manifest["metadata"], manifest["spec"]
    resource = Resource(namespace=meta.get("namespace", DEFAULT_NAMESPACE), name=meta["name"], uid="", version="", generation=1)
    words = migration_arguments(resource, DesiredSpec(parse(raw), raw))
    given = words[words.index("migrate") + 1 :]
    return dict(zip(given[::2], given[1::2], strict=False))


def _fill(context: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    """Makes the manifest's options the defaults of this call: those on the command line win."""
    if value is None:
        return
    try:
        values = options(_manifest(value))
    except (InvalidSpec, ValueError, KeyError, TypeError) as error:
        raise click.BadParameter(f"{value}: {error}") from error
    names = {word: parameter.name for parameter in context.command.params for word in parameter.opts}
    context.default_map = {str(names[word]): text for word, text in values.items()} | {"dry_run": True}


def _manifest(path: Path) -> Json:
    try:
        documents = [document for document in yaml.safe_load_all(path.read_text()) if isinstance(document, dict)]
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise click.BadParameter(f"{path} is not valid YAML: {error}") from error
    consumers = [document for document in documents if document.get("kind") == CONSUMER_KIND]
    if len(consumers) != 1:
        raise click.BadParameter(f"{path} has {len(consumers)} {CONSUMER_KIND}s; next: give it a file with one")
    return consumers[0]


PLAN = click.Option(
    ["--plan"],
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_fill,
    metavar="FILE",
    help="Manifest of a KinesisConsumer that names source, target, stream and the rest. Only the plan is printed (--dry-run).",
)
migrate = copy.copy(checkpoints.commands["migrate"])
migrate.params = [*migrate.params, PLAN]
COMMANDS: dict[str, click.Command] = {"migrate": migrate}
