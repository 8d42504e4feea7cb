"""Options and their types. A value that no run can use is wrong usage (exit 2), and is reported before any call.

The stream that a command is about, and the role that reads it, are the same options for every command that calls Kinesis.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import click
from botocore.utils import is_valid_endpoint_url, is_valid_ipv6_endpoint_url

from sluice_checkpoints.aws import regions
from sluice_checkpoints.aws.role import RoleFields, assumed_role, check_partition
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.reader import SHARD_ID
from sluice_checkpoints.migrate.placement import FROM_START
from sluice_checkpoints.position import END, SEQUENCE_NUMBER, TRIM_HORIZON, Position
from sluice_checkpoints.stream.address import StreamAddress, located

WORDS = {FROM_START: TRIM_HORIZON, "end": END}
WEEK = 7 * 86_400.0
OWNER = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
CLUSTER = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/:-]{0,126}[A-Za-z0-9])?")  # as the chart's clusterName
REGION = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")  # botocore takes it for a host label
Command = Callable[..., None]
NAMES = RoleFields("--role-arn", "--external-id", "--role-session-name")


class Seconds(click.FloatRange):
    """A number of seconds of at most a week; `nan` is none."""

    def __init__(self, least: float) -> None:
        super().__init__(min=least, max=WEEK)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


def parse_region(context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """A region that can be part of a host name. Of one that AWS may not have, a line says so at once: its addresses do not answer."""
    if not REGION.fullmatch(value):
        raise click.BadParameter(f"must be an AWS region, such as eu-west-1, not {value!r}")
    if context.params.get("dynamodb_endpoint") is None and (unknown := regions.doubt(value)):
        click.echo(f"warning --region: {unknown}", err=True)
    return value


def parse_url(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The address of a service, with its scheme."""
    if value is None or _is_address(value):
        return value
    raise click.BadParameter(f"{value!r} is not an address of a service, such as http://localhost:8000")


def _is_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        known = parts.scheme in {"http", "https"} and parts.port != 0
        return known and value.isascii() and value.isprintable() and bool(is_valid_endpoint_url(value) or is_valid_ipv6_endpoint_url(value))
    except ValueError:
        return False


def parse_owner(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Namespace and name of a KinesisConsumer."""
    if value is None or OWNER.fullmatch(value):
        return value
    raise click.BadParameter(f"{value!r} is not NAMESPACE/NAME, such as shop/orders")


def parse_cluster(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The uid of a cluster, or its name."""
    if value is None or CLUSTER.fullmatch(value):
        return value
    raise click.BadParameter(f"{value!r} is neither the uid nor the clusterName of a cluster")


def parse_names(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names of attributes, or keys of rows."""
    if any(not value.strip() for value in values):
        raise click.BadParameter("the name is empty")
    return values


def parse_tags(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Names and values of tags, each name once."""
    tags: dict[str, str] = {}
    for each in values:
        name, sign, value = each.partition("=")
        if not (name and sign) or name in tags:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE, or names a tag twice; write for example team=orders")
        tags[name] = value
    return tags


def parse_places(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, Position]:
    """Shards and where they start, each shard once."""
    places: dict[str, Position] = {}
    for value in values:
        shard, _, word = value.partition("=")
        place = WORDS.get(word.lower()) or (Position.after(word) if SEQUENCE_NUMBER.fullmatch(word) else None)
        if not SHARD_ID.fullmatch(shard) or place is None:
            raise click.BadParameter(f"{value!r} is not SHARD=PLACE, such as shardId-000000000003=trim-horizon, …=END or …=SEQUENCE")
        if places.setdefault(shard, place) != place:
            raise click.BadParameter(f"{shard} is given two positions")
    return places


def parse_shards(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Ids of shards."""
    if strange := [value for value in values if not SHARD_ID.fullmatch(value)]:
        raise click.BadParameter(f"{strange[0]!r} is not the id of a shard, such as shardId-000000000003")
    return values


def parse_time(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """ISO 8601 with a zone, as epoch milliseconds."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a time in ISO 8601: {error}") from error
    if moment.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no zone; write {moment.isoformat()}Z for UTC")
    millis = round(moment.timestamp() * 1000)
    if millis < 0:
        raise click.BadParameter(f"{value!r} lies before 1970, and no stream was there")
    return millis


OPTIONS = (
    click.option("--kinesis-endpoint", callback=parse_url, metavar="URL", help="Address of Kinesis, if it is not AWS's own."),
    click.option(NAMES.session_name, metavar="NAME", help="Name of the role's session, as CloudTrail shows it.  [default: sluice]"),
    click.option(NAMES.external_id, metavar="ID", help="External id that the trust policy of the role asks for."),
    click.option(NAMES.role_arn, metavar="ARN", help="Role that reads the stream. DynamoDB is called with your own credentials."),
)


def stream_options(help_: str) -> Callable[[Command], Command]:
    """The options as one decorator. The command gets a `StreamAddress` as `stream`; it also has `--region`. `help_` is of `--stream`."""

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def called(**options: Any) -> None:
            command(stream=address(options), **options)

        for option in (*OPTIONS, click.option("--stream", required=True, metavar="NAME|ARN", help=help_)):
            called = option(called)
        return called

    return decorated


def address(options: dict[str, Any]) -> StreamAddress:
    """The stream that these options name; they are taken out, but for the region.

    Raises:
        click.UsageError: a value is wrong, or does not fit the others.
    """
    stream, region, endpoint = options.pop("stream"), options["region"], options.pop("kinesis_endpoint")
    given = (options.pop("role_arn"), options.pop("external_id"), options.pop("role_session_name"))
    try:
        role = assumed_role(NAMES, *given)
        name, of = located(stream, "--stream") if stream.startswith("arn:") else (stream, region)
        check_partition(role, stream if name != stream else None, of, NAMES.role_arn)
    except Refused as error:
        raise click.UsageError(str(error)) from error
    if of != region:
        raise click.UsageError(f"--region: {region} is not the region of --stream {stream}; tables and stream are in one region")
    return StreamAddress(name, region, endpoint, arn=stream if name != stream else None, role=role)
