"""`python -m sluice_lab.site.reference`: writes docs/reference/ from the code (`make generate`); a test compares.

Fields of the resource are the CRD's, settings are those of the driver's models, options are click's, and refusals are the operator's own table.
By hand are this module's few sentences alone.
"""

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Iterator
from types import UnionType
from typing import Any

import click

from sluice_checkpoints.cli.main import dead_letters
from sluice_consumer import columns, config
from sluice_consumer.__main__ import redrive
from sluice_consumer.pipelines import BatchInfo
from sluice_kubectl.cli.group import program
from sluice_lab.generate import crd
from sluice_lab.generate.markdown import table
from sluice_lab.places import REPO
from sluice_operator.names import camel
from sluice_operator.resource import spark_conf

FOLDER = REPO / "docs" / "reference"
HEAD = "<!-- Written by `make generate`; do not edit. -->\n\n"
ATTRIBUTE = re.compile(r"([a-z_]+): (.*?)(?=(?:\n|; )[a-z_]+: |\Z)", re.DOTALL)
SNAKE = re.compile(r"`([a-z]+_[a-z_]+)`")
COLUMN = re.compile(r"(?m)^\* ([^:]+): (.+)$")

RESOURCE = """# KinesisConsumer

Every field of `sluice.dev/v1alpha1`. A required field is in bold; `[]` is one of a list. `kubectl explain kc.spec` prints the same.
[Rules](../rules.md) lists what changes while a consumer runs, and what restarts it.

## Spec

{spec}

## Status

Only the operator writes it. [Status](status.md#status) explains it.

{status}
"""
PIPELINE = """# Pipeline

A pipeline is a function `process(batch, info)`. [Interfaces](../interfaces.md#configuration-json) explains what its return and its exceptions mean.

A batch may be empty, so `batch.first()` may be None. The first batch after a start is empty if no record has arrived. While a stream is idle there
are no batches, except one an hour that reads quiet shards again.

## Columns of a batch

{columns}

## BatchInfo

{info}

`info.reject(rows, reason)` keeps rows as dead letters ([dead letters](../dead-letters.md#rows-that-process-itself-rejects)).

## Refused settings of Spark

`spec.sparkConf` may have any other setting. A `*` stands for any text.

{refused}
"""
CONFIGURATION = """# Configuration of a driver

The file of `sluice run --config`, in JSON. In a cluster the operator writes it. A required setting is in bold, and an unknown one is refused.
[Interfaces](../interfaces.md#configuration-json) has an example, and explains the settings.

{settings}
"""
COMMANDS = """# Commands

The program is `sluice`, or `kubectl sluice`. The consumer's image has parts of it under other names:

| there | here |
| --- | --- |
| `python -m sluice_checkpoints migrate`, `export`, `reset`, `diagnose`, `show`, `adopt` | `sluice migrate` and so on |
| `python -m sluice_checkpoints dead-letters list`, `show` | `sluice dead-letters list --path`, `show --path` |
| `python -m sluice_consumer` | `sluice run` |
| `python -m sluice_consumer redrive`, `rollback-sink` | `sluice dead-letters redrive --config`, `sluice rollback-sink` |

Exit codes: [interfaces](../interfaces.md#exit-codes-of-driver-and-job)."""

Json = dict[str, Any]


POOL = """# KinesisConsumerPool

Every field of `sluice.dev/v1alpha1`. A required field is in bold; `[]` is one of a list. `kubectl explain kcp.spec` prints the same.
[Pools](../pools.md) lists which field belongs to the pool, and which to a consumer in it.

## Spec

{spec}

## Status

Only the operator writes it. Its conditions are those of a consumer; [Status](status.md#status) explains them.

{status}
"""


def resource() -> str:
    """Every field of a KinesisConsumer."""
    schema = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return RESOURCE.format(spec=_fields(schema["spec"]), status=_fields(schema["status"]))


def pool() -> str:
    """Every field of a KinesisConsumerPool."""
    schema = crd.pool_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return POOL.format(spec=_fields(schema["spec"]), status=_fields(schema["status"]))


def _fields(schema: Json) -> str:
    return table(("field", "type", "default", "bounds", "description"), (map(cell, row) for row in _rows(schema, "")))


def _rows(schema: Json, place: str) -> Iterator[tuple[str, ...]]:
    for name, field in schema.get("properties", {}).items():
        path = f"{place}{name}"
        shown = f"**`{path}`**" if name in schema.get("required", ()) else f"`{path}`"
        default = field.get("default")
        yield shown, _type(field), "" if default in (None, {}) else f"`{default}`", _bounds(field), field.get("description", "")
        inner = field.get("items", field)
        yield from _rows(inner, f"{path}{'[]' if inner is not field else ''}.")


def _type(field: Json) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    return f"list of {_type(field['items'])}" if "items" in field else str(field.get("type", "any"))


def _bounds(field: Json) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    least, most = (field.get(f"{end}imum", field.get(f"{end}Length", field.get(f"{end}Items"))) for end in ("min", "max"))
    size = {"string": " characters", "array": " items"}.get(field.get("type", ""), "")
    if least is None and most is None:
        return ""
    return (f"at most {most}" if least is None else f"at least {least}" if most is None else f"{least} to {most}") + size


def pipeline() -> str:
    """What `process(batch, info)` is given, and which settings of Spark it cannot have."""
    kinds = dict(part.split() for part in columns.DDL.split(", "))
    told = [(name, text) for names, text in COLUMN.findall(columns.__doc__ or "") for name in re.findall(r"`(\w+)`", names)]
    shown = table(("column", "type", "description"), ((f"`{name}`", kinds[name], cell(text)) for name, text in told))
    known = attributes(inspect.getdoc(BatchInfo) or "")
    hints = {each.name: str(each.type) for each in dataclasses.fields(BatchInfo)}
    info = table(("attribute", "type", "description"), ((f"`{name}`", f"`{hints[name]}`", cell(known[name])) for name in hints))
    return PIPELINE.format(columns=shown, info=info, refused=_refused())


def _refused() -> str:
    rows = [(f"`{key}`", why) for key, why in spark_conf.EXACT.items()]
    rows += [(f"`{prefix}*`", why) for prefix, why in spark_conf.PREFIXES.items()]
    rows += [(f"`{key}`, unless `false`", why) for key, why in spark_conf.ONLY_OFF.items()]
    rows += [(f"`{prefix}*`", said) for prefix in (spark_conf.DRIVER_VOLUMES,) if (said := spark_conf.without_effect(prefix))]
    rows += [(f"`{prefix}*`, unless `policy.privilegedPods`", said) for prefix in (spark_conf.HOST_PATH,) if (said := spark_conf.privilege(prefix))]
    return table(("setting", "why"), sorted(rows))


def attributes(text: str) -> dict[str, str]:
    """The part "Attributes" of a docstring, by name."""
    _, _, part = text.partition("Attributes:\n")
    return dict(ATTRIBUTE.findall(inspect.cleandoc(part.split("\n\n")[0])))


def configuration() -> str:
    """Every setting of the driver's file."""
    rows = [map(cell, row) for row in _settings(config.Config, "")]
    return CONFIGURATION.format(settings=table(("setting", "type", "default", "description"), rows))


def _settings(model: type, place: str) -> Iterator[tuple[str, ...]]:
    hints, told = typing.get_type_hints(model), attributes(inspect.getdoc(model) or "")
    for field in dataclasses.fields(model):
        kind, path = hints[field.name], f"{place}{camel(field.name)}"
        part = next((each for each in (kind, *typing.get_args(kind)) if dataclasses.is_dataclass(each)), None)
        what = (inspect.getdoc(part) or "").split("\n\n")[0] if part else told.get(field.name) or _of_the_resource(path)
        shown = f"`{path}`" if _may_be_left_out(field) else f"**`{path}`**"
        yield (
            shown,
            "object" if part else _named(kind),
            _default(field),
            SNAKE.sub(lambda name: f"`{camel(name[1])}`", what.replace("None:", "null:")),
        )
        if isinstance(part, type):
            yield from _settings(part, f"{path}.")


def _of_the_resource(path: str) -> str:
    """What the resource's field of the same path says; "" if it has none."""
    node = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name in path.split("."):
        node = node.get("properties", {}).get(name, {})
    return str(node.get("description", ""))


def _may_be_left_out(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> str:
    return "" if field.default in (dataclasses.MISSING, None, "") else f"`{json.dumps(field.default)}`"


def _named(kind: Any) -> str:
    if isinstance(kind, UnionType):
        return _named(next(each for each in typing.get_args(kind) if each is not type(None)))
    return {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}.get(getattr(kind, "__name__", ""), "object")


def commands() -> str:
    """Every command with its options."""
    parts = [COMMANDS]
    parts += [_command(name, command) for name, command in leaves(program, "sluice")]
    parts += [_command(f"{name} --path", command) for name, command in leaves(dead_letters, "sluice dead-letters")]
    parts += [_command("sluice dead-letters redrive --config", redrive)]
    return "\n\n".join(parts) + "\n"


def leaves(group: click.Group, place: str) -> Iterator[tuple[str, click.Command]]:
    """Commands that are no groups, with their whole names."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            continue
        if isinstance(command, click.Group):
            yield from leaves(command, f"{place} {name}")
        else:
            yield f"{place} {name}", command


def _command(name: str, command: click.Command) -> str:
    said = " ".join(inspect.cleandoc((command.help or "").split("\f")[0]).replace("\b", "").split())
    return f"## {name}\n\n{said}\n\n{table(('option', 'what', 'default'), map(_option, command.params))}"


def _option(param: click.Parameter) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    shown = isinstance(param, click.Option) and param.show_default and param.default is not None and not callable(param.default)
    return f"**{names}**" if param.required else names, cell(getattr(param, "help", None) or ""), f"`{param.default}`" if shown else ""


def cell(text: str) -> str:
    """Text in a table: bars end no cell."""
    return " ".join(text.replace("|", r"\|").split())


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    written = {"resource.md": resource, "pool.md": pool, "pipeline.md": pipeline, "configuration.md": configuration, "commands.md": commands}
    return {name: _titled(make()) for name, make in written.items()}


def _titled(text: str) -> str:
    title, rest = text.split("\n\n", 1)
    return f"{title}\n\n{HEAD}{rest}"


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
