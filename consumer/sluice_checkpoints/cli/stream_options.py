"""The stream that a command is about, and the role that reads it: the same options for every command that calls Kinesis."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from sluice_checkpoints.aws.role import RoleFields, assumed_role, check_partition
from sluice_checkpoints.cli import options as cli_options
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.stream.address import StreamAddress, located

Command = Callable[..., None]
NAMES = RoleFields("--role-arn", "--external-id", "--role-session-name")
OPTIONS = (
    click.option("--kinesis-endpoint", callback=cli_options.parse_url, metavar="URL", help="Address of Kinesis, if it is not AWS's own."),
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
