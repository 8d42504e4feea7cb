"""A role that calls are made as: its three settings."""

from __future__ import annotations

import re

import pytest

from sluice_checkpoints.aws.role import AssumedRole, RoleFields, assumed_role, session_name_of
from sluice_checkpoints.errors import Refused

FIELDS = RoleFields("stream.roleArn", "stream.externalId", "stream.sessionName")
ROLE = "arn:aws:iam::444455556666:role/readers/orders"


def test_a_role_has_a_name_for_its_sessions_of_its_own() -> None:
    """CloudTrail of the other account shows it."""
    assert assumed_role(FIELDS, ROLE, None, None) == AssumedRole(ROLE, None, "sluice")
    assert assumed_role(FIELDS, ROLE, "ab", "them") == AssumedRole(ROLE, "ab", "them")
    assert assumed_role(FIELDS, None, None, None) is None
    assert session_name_of("shop/orders") == "sluice-shop-orders"
    assert len(session_name_of("o" * 253)) == 64


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((None, "id", None), "stream.externalId: belongs to stream.roleArn"),
        ((None, None, "them"), "stream.sessionName: belongs to stream.roleArn"),
        (("orders-reader", None, None), "stream.roleArn: 'orders-reader' is not the ARN of a role"),
        (("arn:aws:iam::1:role/r", None, None), "stream.roleArn: "),
        (("arn:aws:iam::444455556666:user/u", None, None), "stream.roleArn: "),
        ((ROLE + "\n", None, None), "stream.roleArn: "),
        ((ROLE, "a", None), "stream.externalId: 'a' is not an external id"),
        ((ROLE, "a b", None), "stream.externalId: "),
        ((ROLE, "", None), "stream.externalId: "),
        ((ROLE, "ab", "a/b"), "stream.sessionName: 'a/b' is not the name of a session"),
        ((ROLE, "ab", "s" * 65), "stream.sessionName: "),
    ],
)
def test_a_setting_that_aws_would_not_take_is_refused_by_its_name(given: tuple[str | None, str | None, str | None], said: str) -> None:
    """STS answers with a regular expression, and names no field."""
    with pytest.raises(Refused, match=re.escape(said)):
        assumed_role(FIELDS, *given)


@pytest.mark.parametrize("arn", [ROLE, "arn:aws-us-gov:iam::444455556666:role/r", "arn:aws-cn:iam::444455556666:role/a/b/r"])
def test_a_role_of_any_partition_and_path_is_taken(arn: str) -> None:
    """GovCloud and China have partitions of their own."""
    assert assumed_role(FIELDS, arn, None, None) is not None
