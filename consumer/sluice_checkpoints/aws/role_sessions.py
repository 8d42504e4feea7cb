"""Sessions of a role: begun with the process' own credentials, and renewed beside the calls like those (`aws.credentials`).

Only calls to which a role is given are made as that role. All others of the process stay with its own credentials.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from botocore.config import Config
from botocore.credentials import DeferredRefreshableCredentials
from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from sluice_checkpoints.aws import denials
from sluice_checkpoints.aws.boto_clients import kept_client
from sluice_checkpoints.aws.credentials import Credentials, of_process
from sluice_checkpoints.aws.retry import EXPIRED, EXPIRED_ADVICE, NETWORK, Again, may_pass
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.aws.signed_http import one_line
from sluice_checkpoints.errors import AccessDenied, Refused

CONNECT_SECONDS, READ_SECONDS = 5, 10
ROLES = 1024  # a group of consumers has one each
DENIED = "AccessDenied"


def credentials_of(role: AssumedRole | None, region: str) -> Credentials:
    """What calls are signed with: sessions of this role, shared by all clients of the process; without a role, the process' own credentials.

    `region`: of the STS that is asked, unless AWS_ENDPOINT_URL_STS names another address.
    """
    return of_process() if role is None else _of_role(role, region, of_process())


def begin(role: AssumedRole | None, region: str) -> None:
    """Begins a session, so that the first call finds one. It waits a second at most. If there is none then, the first call says why."""
    if role is not None:
        with contextlib.suppress(Again, Refused):
            credentials_of(role, region).current()


@functools.lru_cache(maxsize=ROLES)
def _of_role(role: AssumedRole, region: str, own: Credentials) -> Credentials:
    return Credentials(lambda: _source(role, region, own), named=f"credentials of role {role.arn}")


def _source(role: AssumedRole, region: str, own: Credentials) -> DeferredRefreshableCredentials:
    config = Config(retries={"total_max_attempts": 2}, connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS)
    sts = kept_client("sts", region, None, config, own)
    return DeferredRefreshableCredentials(lambda: _begun(sts, role), method="assume-role")


def _begun(sts: Any, role: AssumedRole) -> dict[str, str]:
    """A new session, as botocore's credentials want it. It lasts an hour: a role that assumes another one gets no more (IAM, role chaining).

    Raises:
        AccessDenied: the trust policy of the role, or the policy of the own one, does not allow it.
        Refused: the role, its external id, the region or the own key has to be corrected (`denials.of_request`).
        Again: the own credentials have expired, or STS does not answer.
    """
    asked = {"RoleArn": role.arn, "RoleSessionName": role.session_name} | ({"ExternalId": role.external_id} if role.external_id else {})
    try:
        session = sts.assume_role(**asked)["Credentials"]
    except ClientError as error:
        code, message = (one_line(error.response["Error"].get(field, "")) for field in ("Code", "Message"))
        if code == DENIED:
            raise AccessDenied(denials.of_role(role, message)) from error
        passes = may_pass(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0), code, message)
        if not passes and (denial := denials.of_request(role, code, message, sts.meta.region_name)):
            raise Refused(denial) from error
        if code in EXPIRED:
            raise Again(f"STS refuses the credentials that assume it: {code}: {message}; {EXPIRED_ADVICE}", cause=code) from error
        raise
    except (BotoConnectionError, HTTPClientError) as error:
        raise Again(f"no answer from STS: {error}; check this machine's {NETWORK}") from error
    return {
        "access_key": session["AccessKeyId"],
        "secret_key": session["SecretAccessKey"],
        "token": session["SessionToken"],
        "expiry_time": session["Expiration"].isoformat(),
        "account_id": role.arn.split(":")[4],
    }
