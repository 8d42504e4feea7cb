"""What AWS denies: the statement that is missing, or the policy that has to change, as a person would paste or look for it."""

from __future__ import annotations

import json
import re

import pytest

from sluice_checkpoints.aws import denials
from sluice_checkpoints.aws.role import AssumedRole
from sluice_checkpoints.aws.signed_http import LONGEST, refusal

ROLE = "arn:aws:iam::444455556666:role/readers/orders"
POD = "arn:aws:sts::111122223333:assumed-role/sluice-driver/eks-1"
STREAM = "arn:aws:kinesis:eu-west-1:444455556666:stream/orders"
ASSUME = f"User: {POD} is not authorized to perform: sts:AssumeRole on resource: {ROLE}"
READ = f"User: arn:aws:sts::444455556666:assumed-role/orders/sluice-orders is not authorized to perform: kinesis:GetRecords on resource: {STREAM}"


def statements(text: str) -> list[dict[str, object]]:
    decoder = json.JSONDecoder()
    return [decoder.raw_decode(text, found.start())[0] for found in re.finditer(r'\{"Effect"', text)]


def test_a_denied_role_names_both_statements_where_sts_does_not_say_which_is_missing() -> None:
    """The external id is part of the trust policy: a wrong one is denied in the same words."""
    said = denials.of_role(AssumedRole(ROLE, "shop"), ASSUME)
    trust, own = statements(said)
    principal = {"AWS": "arn:aws:iam::111122223333:role/sluice-driver"}
    of_id = {"Condition": {"StringEquals": {"sts:ExternalId": "shop"}}}
    assert trust == {"Effect": "Allow", "Principal": principal, "Action": ["sts:AssumeRole"], **of_id}
    assert ' and the same for ["sts:TagSession"] without sts:ExternalId, and a policy' in said
    assert own == {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Resource": ROLE}
    assert said.startswith(f"AssumeRole of {ROLE} was denied to {POD}; the trust policy of that role needs")
    assert "a policy of that principal needs" in said


@pytest.mark.parametrize(
    ("because", "key"),
    [
        (" because no identity-based policy allows the sts:AssumeRole action", "Resource"),
        (" because no resource-based policy allows the sts:AssumeRole action", "Principal"),
    ],
)
def test_a_denied_role_names_the_one_statement_that_sts_says_is_missing(because: str, key: str) -> None:
    (found,) = statements(denials.of_role(AssumedRole(ROLE), ASSUME + because))
    assert key in found
    assert "Condition" not in found


def test_a_denied_role_without_an_external_id_says_where_one_would_be_set() -> None:
    """The trust policy may ask for one, and the message of STS does not say so."""
    assert denials.of_role(AssumedRole(ROLE), ASSUME).endswith("if the trust policy asks for an external id, set externalId")
    assert "set externalId" not in denials.of_role(AssumedRole(ROLE, "shop"), ASSUME)


def test_a_denied_read_names_the_whole_statement_of_a_consumer() -> None:
    """Else the next right that is missing shows at the next start."""
    said = denials.of_stream(READ + " because no identity-based policy allows the kinesis:GetRecords action")
    assert said is not None
    (found,) = statements(said)
    assert found == {"Effect": "Allow", "Action": list(denials.READING), "Resource": STREAM}
    assert said.startswith("a policy of arn:aws:iam::444455556666:role/orders needs")


def test_a_denied_read_of_a_stream_with_a_policy_of_its_own_names_the_caller_in_it() -> None:
    """A stream of another account can be read without a role of that account."""
    said = denials.of_stream(READ + " because no resource-based policy allows the kinesis:GetRecords action")
    assert said is not None
    assert statements(said)[0]["Principal"] == {"AWS": "arn:aws:iam::444455556666:role/orders"}
    assert said.startswith(f"the resource policy of {STREAM} needs")


@pytest.mark.parametrize("said", ["", "no", "User: x is not authorized", ASSUME, "User: arn:a is not authorized to perform: kinesis:GetRecords"])
def test_a_message_that_names_no_stream_gets_no_statement(said: str) -> None:
    assert denials.of_stream(said) is None


def test_a_caller_that_is_no_session_is_named_as_it_is() -> None:
    user = ASSUME.replace(POD, "arn:aws:iam::111122223333:user/ann")
    assert statements(denials.of_role(AssumedRole(ROLE), user))[0]["Principal"] == {"AWS": "arn:aws:iam::111122223333:user/ann"}
    assert "ROLE-OF-THE-PODS" in denials.of_role(AssumedRole(ROLE), "no")


@pytest.mark.parametrize(
    ("because", "key"),
    [(" because no identity-based policy allows it", "Resource"), (" because no role trust policy allows the sts:AssumeRole action", "Principal")],
)
def test_sts_names_no_role_where_it_says_which_policy_is_missing(because: str, key: str) -> None:
    """Its words since 2021; a wrong external id is a trust policy that does not allow."""
    said = denials.of_role(AssumedRole(ROLE, "shop"), ASSUME.partition(" on resource")[0] + because)
    assert all(key in found for found in statements(said))


@pytest.mark.parametrize(
    ("because", "policy"),
    [
        ("with an explicit deny in a service control policy", "the service control policy has a Deny"),
        ("with an explicit deny in a service control policy: arn:aws:organizations::1:policy/o-a/p-b", "the service control policy has a Deny"),
        ("with an explicit deny in the role trust policy", "the role trust policy has a Deny"),
        ("with an explicit deny in an identity-based policy", "the identity-based policy has a Deny"),
        ("with an explicit deny", "the policy has a Deny"),
        ("because no permissions boundary allows the kinesis:GetRecords action", "the permissions boundary has to allow this call"),
        ("because no session policy allows the kinesis:GetRecords action", "the session policy has to allow this call"),
        ("because no VPC endpoint policy allows the kinesis:GetRecords action", "the VPC endpoint policy has to allow this call"),
        ("because no resource control policy allows the kinesis:GetRecords action", "the resource control policy has to allow this call"),
    ],
)
def test_no_statement_is_printed_that_could_not_help(because: str, policy: str) -> None:
    """A Deny beats each Allow, and a boundary allows nothing by itself."""
    for said in (denials.of_stream(f"{READ} {because}"), denials.of_role(AssumedRole(ROLE), f"{ASSUME} {because}")):
        assert said is not None
        assert not statements(said)
        assert policy in said


def test_a_key_that_is_denied_has_its_statement() -> None:
    """Two policies have to allow it: those of the role, and of the key."""
    key = "arn:aws:kms:eu-west-1:444455556666:key/1"
    said = denials.of_stream(f"User: {POD} is not authorized to perform: kms:Decrypt on resource: {key} because no identity-based policy allows it")
    assert said is not None
    assert statements(said) == [{"Effect": "Allow", "Action": ["kms:Decrypt"], "Resource": key}]
    assert said.endswith("the policy of the key has to allow it, too")


def test_what_a_session_hands_on_beside_its_tags_is_part_of_the_statement() -> None:
    """The identity of its source, where an organisation asks for it."""
    said = denials.of_role(AssumedRole(ROLE), ASSUME.replace("sts:AssumeRole", "sts:SetSourceIdentity"))
    assert {tuple(found["Action"]) for found in statements(said)} == {(*denials.ASSUMING, "sts:SetSourceIdentity")}  # type: ignore[arg-type]


def test_a_trust_in_a_person_can_be_saved() -> None:
    """A role of IAM Identity Center has a path that AWS does not show, and IAM takes no principal that does not exist."""
    person = "arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Admin_0a1b/ann@example.com"
    trust, _ = statements(denials.of_role(AssumedRole(ROLE, "shop"), ASSUME.replace(POD, person)))
    named = {"ArnLike": {"aws:PrincipalArn": "arn:aws:iam::111122223333:role/*/AWSReservedSSO_Admin_0a1b"}}
    assert trust["Principal"] == {"AWS": "arn:aws:iam::111122223333:root"}
    assert trust["Condition"] == {"StringEquals": {"sts:ExternalId": "shop"}} | named


def test_a_trust_in_a_role_says_that_its_path_is_missing() -> None:
    """For the same reason; a user's ARN has its path."""
    assert denials.PATH in denials.of_role(AssumedRole(ROLE), ASSUME)
    assert denials.PATH not in denials.of_role(AssumedRole(ROLE), ASSUME.replace(POD, "arn:aws:iam::111122223333:user/staff/ann"))


@pytest.mark.parametrize(("words", "found"), [(64, "w" * 64), (65, None)])
def test_a_kind_of_policy_is_at_most_64_characters(words: int, found: str | None) -> None:
    """Any endpoint may have written the message. A search without a bound takes the square of its length, and holds the interpreter's lock."""
    assert denials._silent(f"because no {'w' * words} allows") == found


def test_a_services_message_is_one_line_of_bounded_length() -> None:
    code, said = refusal("", {"__type": "a#Denied\n", "message": "09:00\x1b[31m\nbatch 7\u202e" + "x" * 10_000})
    assert (code, said[:14], len(said)) == ("Denied ", "09:00 [31m bat", LONGEST)
