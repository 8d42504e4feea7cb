"""How a command ends: errors become a document, a line and an exit code here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigNotFound,
    ConfigParseError,
    InvalidConfigError,
    PartialCredentialsError,
    ProfileNotFound,
)
from rich.markup import escape

from sluice_checkpoints.aws.retry import NETWORK, NO_ANSWER, Again
from sluice_checkpoints.cli import report
from sluice_checkpoints.errors import Refused, ServiceUnavailable, SluiceError

CREDENTIALS = "look at the credentials and at this machine's clock"
# Errors that DynamoDB repeats for the same call until a person acts.
REFUSALS = {
    "IncompleteSignatureException": CREDENTIALS,
    "InvalidSignatureException": CREDENTIALS,
    "MissingAuthenticationTokenException": CREDENTIALS,
    "ValidationException": "repeating it does not help; look at the names of tables and stream",
}
# What botocore says of its own settings.
SETTINGS = (ConfigNotFound, ConfigParseError, InvalidConfigError, PartialCredentialsError, ProfileNotFound)
# What a ValidationException may be about instead, by a word of its message.
INVALID = {
    "KMS": "enable the table's KMS key, and let this role use it (kms:Decrypt)",
    "size": "Sluice made a request that is too large: report it, with this message",
    "Expression": "Sluice made a request that DynamoDB does not understand: report it, with this message",
}


def guarded(output: report.Output, command: Callable[[], None], *, terminal: bool = True, to_be_read: bool = False) -> int:
    """Runs a command; errors become a document and an exit code here and nowhere else.

    A result that cannot be printed does not change the code, unless the command has none but that (`to_be_read`).
    """
    try:
        code = _code_of(output, command, terminal=terminal)
    finally:
        delivered = output.delivered()
    return code or int(to_be_read and not delivered)


def _code_of(output: report.Output, command: Callable[[], None], *, terminal: bool) -> int:
    try:
        command()
    except (SluiceError, BotoCoreError, ClientError) as error:
        named = _refused(error) or _unanswered(error) or error
        code = named.exit_code if isinstance(named, SluiceError) else 1
        output.failed(named, code, terminal=terminal)
        return code
    except Exception as error:  # noqa: BLE001 - a fault of this program, and a document is promised all the same
        if output.finished:
            output.log.print(f"[yellow]warning[/] the result could not be printed: {escape(str(error))}", markup=True, soft_wrap=True)
            return 0
        output.log.print_exception()
        output.failed(error, 1, terminal=terminal)
        return 1
    return 0


def _unanswered(error: Exception) -> ServiceUnavailable | None:
    """The same with what to check, where nobody answered at all; None: a service did, or it is another error."""
    if isinstance(error, ServiceUnavailable) and isinstance(error.__cause__, Again) and error.__cause__.cause == NO_ANSWER:
        return ServiceUnavailable(f"{error}; check --region, the endpoint that you gave, if any, and this machine's {NETWORK}")
    return None


def _refused(error: Exception) -> Refused | None:
    """The refusal that AWS settings or DynamoDB's answer amount to; None: another try may succeed."""
    if isinstance(error, SETTINGS):
        return Refused(f"{error}; correct AWS_PROFILE, or the files that AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name (~/.aws/config)")
    answer = error if isinstance(error, ClientError) else error.__cause__
    reply = answer.response["Error"] if isinstance(answer, ClientError) else {}
    code, message = reply.get("Code", ""), reply.get("Message", "")
    about = [advice for word, advice in INVALID.items() if code == "ValidationException" and word in message]
    return Refused(f"{error}; {(*about, REFUSALS[code])[0]}") if code in REFUSALS else None
