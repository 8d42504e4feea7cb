"""Sessions of a role: what STS is asked, what its answers mean, and which calls are made with them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore import credentials as boto
from botocore.exceptions import ClientError

from sluice_checkpoints.aws import role_sessions as subject
from sluice_checkpoints.aws.credentials import Credentials, of_process
from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.errors import AccessDenied, Refused

ROLE = AssumedRole("arn:aws:iam::444455556666:role/orders-reader", "shop", "sluice-orders")
UNTIL = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=1)


class Sts:
    def __init__(self, error: ClientError | None = None) -> None:
        self.error, self.asked = error, dict[str, str]()
        self.meta = SimpleNamespace(region_name="eu-west-1")

    def assume_role(self, **asked: str) -> dict[str, Any]:
        self.asked = asked
        if self.error:
            raise self.error
        return {"Credentials": {"AccessKeyId": "k", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": UNTIL}}


def refusing(code: str, message: str = "not authorized") -> Sts:
    return Sts(ClientError({"Error": {"Code": code, "Message": message}}, "AssumeRole"))


def test_a_session_is_asked_for_with_the_external_id_and_for_no_more_than_an_hour() -> None:
    """The default: a role that assumes another one gets no more."""
    sts = Sts()
    assert subject._begun(sts, ROLE)["expiry_time"] == UNTIL.isoformat()
    assert sts.asked == {"RoleArn": ROLE.arn, "RoleSessionName": "sluice-orders", "ExternalId": "shop"}
    subject._begun(sts, AssumedRole(ROLE.arn))
    assert sts.asked == {"RoleArn": ROLE.arn, "RoleSessionName": "sluice"}


def test_a_denied_session_is_refused_with_the_statement_that_is_missing() -> None:
    with pytest.raises(AccessDenied, match='"sts:ExternalId": "shop"'):
        subject._begun(refusing("AccessDenied"), ROLE)


@pytest.mark.parametrize("code", ["Throttling", "InternalFailure"])
def test_any_other_answer_is_no_denial(code: str) -> None:
    with pytest.raises(ClientError, match=code):
        subject._begun(refusing(code), ROLE)


def test_a_clock_that_is_off_is_waited_for() -> None:
    with pytest.raises(ClientError, match="Signature expired"):
        subject._begun(refusing("SignatureDoesNotMatch", "Signature expired: 1 is now earlier than 2"), ROLE)


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException"])
def test_own_credentials_that_expired_are_named_as_such(code: str) -> None:
    """They may be renewed before the next try; and it is not the role's session that has expired."""
    with pytest.raises(Again, match=f"^STS refuses the credentials that assume it: {code}: .*; the AWS credentials have expired"):
        subject._begun(refusing(code), ROLE)


@pytest.mark.parametrize(
    ("code", "command"),
    [
        ("RegionDisabledException", "aws account enable-region --region-name eu-west-1"),
        ("ValidationError", "aws iam get-role --role-name orders-reader"),
        ("PackedPolicyTooLarge", "aws eks update-pod-identity-association --disable-session-tags"),
        ("InvalidClientTokenId", "aws sts get-caller-identity"),
        ("SignatureDoesNotMatch", "correct this machine's clock"),
    ],
)
def test_a_session_that_no_further_try_would_begin_is_refused_with_what_to_do(code: str, command: str) -> None:
    """The calls that need the session raise it, so a driver ends with 65 and not with an error that is tried for ever."""
    source = boto.DeferredRefreshableCredentials(lambda: subject._begun(refusing(code), ROLE), method="assume-role")
    with pytest.raises(Refused, match=f"^AssumeRole of {ROLE.arn} was refused by STS in eu-west-1: {code}: .*{command}") as raised:
        Credentials(lambda: source).current()
    assert raised.value.exit_code == 65
    assert not isinstance(raised.value, AccessDenied)


def test_all_clients_of_a_process_share_a_session_and_other_calls_keep_the_own_credentials() -> None:
    """A role is another one in another region, for STS is another one there."""
    one = subject.credentials_of(ROLE, "eu-west-1")
    assert one is subject.credentials_of(AssumedRole(*(ROLE.arn, "shop", "sluice-orders")), "eu-west-1")
    assert one is not subject.credentials_of(ROLE, "eu-central-1")
    assert one is not subject.credentials_of(AssumedRole(ROLE.arn), "eu-west-1")
    assert subject.credentials_of(None, "eu-west-1") is of_process()


def test_each_consumer_of_a_large_group_keeps_its_session() -> None:
    """Their session names differ, so each has sessions of its own; one that was forgotten would begin a second one beside its first."""
    roles = [AssumedRole(ROLE.arn, "shop", f"sluice-{number}") for number in range(100)]
    first = [subject.credentials_of(role, "eu-west-1") for role in roles]
    assert all(subject.credentials_of(role, "eu-west-1") is kept for role, kept in zip(roles, first, strict=True))
