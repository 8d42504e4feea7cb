"""A role that calls are made as. A value: what begins its sessions is `aws.role_sessions`, which imports botocore."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sluice_checkpoints.errors import Refused

SESSION_NAME = "sluice"
# API reference, AssumeRole and CreateRole
ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]{1,510}/)?[a-zA-Z0-9_+=,.@-]{1,64}")
EXTERNAL_ID = re.compile(r"[a-zA-Z0-9_+=,.@:/-]{2,1224}")
SESSION = re.compile(r"[a-zA-Z0-9_+=,.@-]{2,64}")
OF_REGIONS = {
    "aws-cn": "cn-",
    "aws-us-gov": "us-gov-",
    "aws-iso": "us-iso-",
    "aws-iso-b": "us-isob-",
    "aws-iso-e": "eu-isoe-",
    "aws-iso-f": "us-isof-",
    "aws-eusc": "eusc-",
}
"""How names of regions begin, by partition, as botocore knows them. All others are regions of `aws`, or of a partition that came later."""
OTHER_SIGNS = re.compile(r"[^a-zA-Z0-9_+=,.@-]")


@dataclass(frozen=True, slots=True)
class AssumedRole:
    """A role, usually of another account.

    Attributes:
        external_id: that the role's trust policy asks for, if it does.
        session_name: what CloudTrail of the role's account shows.
    """

    arn: str
    external_id: str | None = None
    session_name: str = SESSION_NAME


@dataclass(frozen=True, slots=True)
class RoleFields:
    """What the three settings of a role are called where they were given: as fields, or as options."""

    role_arn: str
    external_id: str
    session_name: str


def assumed_role(fields: RoleFields, arn: str | None, external_id: str | None, session_name: str | None) -> AssumedRole | None:
    """The role that three settings name; None: no role, so calls are made with the process' own credentials.

    Raises:
        Refused: a value has not the form that AWS asks for, or belongs to a role that is not named.
    """
    if arn is None:
        given = {fields.external_id: external_id, fields.session_name: session_name}
        if extra := [name for name, value in given.items() if value is not None]:
            raise Refused(f"{extra[0]}: belongs to {fields.role_arn}, which is missing; set {fields.role_arn}, or remove {extra[0]}")
        return None
    if not ROLE_ARN.fullmatch(arn):
        raise Refused(f"{fields.role_arn}: {arn!r} is not the ARN of a role, such as arn:aws:iam::111122223333:role/orders-reader")
    if external_id is not None and not EXTERNAL_ID.fullmatch(external_id):
        raise Refused(f"{fields.external_id}: {external_id!r} is not an external id: 2 to 1224 of a-z, A-Z, 0-9 and _+=,.@:/-")
    if session_name is not None and not SESSION.fullmatch(session_name):
        raise Refused(f"{fields.session_name}: {session_name!r} is not the name of a session: 2 to 64 of a-z, A-Z, 0-9 and _+=,.@-")
    return AssumedRole(arn, external_id, session_name or SESSION_NAME)


def check_partition(role: AssumedRole | None, arn: str | None, region: str, field: str) -> None:
    """Makes sure that a role can read this stream. No session crosses partitions (`aws`, `aws-cn`, …): STS knows the roles of its own.

    Raises:
        Refused: the stream is of another partition, as its `arn` says. Without one its `region` may say so, too. `field`: the role's.
    """
    if role is None:
        return
    its = partition(role.arn)
    if arn is not None and its != partition(arn):
        theirs = partition(arn)
        raise Refused(f"{field}: {role.arn} is in the partition {its}, and the stream is in {theirs}; name a role of the partition {theirs}")
    for name, prefix in OF_REGIONS.items():
        if (its == name) != region.startswith(prefix):
            raise Refused(f"{field}: {role.arn} is in the partition {its}, and the region {region} is not; name a role of the stream's partition")


def partition(arn: str) -> str:
    """Of an ARN."""
    return arn.split(":")[1]


def session_name_of(consumer: str) -> str:
    """The session's name of a consumer, unless the user chose one."""
    return OTHER_SIGNS.sub("-", f"{SESSION_NAME}-{consumer}")[:64]
