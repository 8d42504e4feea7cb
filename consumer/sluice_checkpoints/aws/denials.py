"""What AWS denies, and what would allow it: the IAM statement that is missing, ready to paste, or the policy that has to change. Pure.

AWS names caller, action and resource in its message (IAM guide, "Troubleshoot access denied error messages"). It often does not say which policy
is at fault. Emulators and proxies write other messages; then there is no statement.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sluice_checkpoints.aws.role import AssumedRole

SAID = re.compile(
    r"User: (?P<caller>arn:\S+) is not authorized to perform: (?P<service>\w+):(?P<call>\w+)(?: on resource: \"?(?P<resource>arn:[^\s\"]+)\"?)?"
)
BECAUSE = re.compile(r"because no (?P<silent>[\w -]{1,64}?) allows|with an explicit deny(?: in (?:an?|the) (?P<denying>[\w -]{0,64}\w))?")
ASSUMED = re.compile(r"arn:(?P<partition>[\w-]+):sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)/.*")
DENIED, KEY_DENIED = "AccessDeniedException", "KMSAccessDeniedException"
OF_IDENTITY, OF_RESOURCE, OF_TRUST = "identity-based policy", "resource-based policy", "role trust policy"
PERSONS = "AWSReservedSSO_"  # roles of IAM Identity Center; each has a path, which no message of AWS shows
PATH = "; if the role of the principal has a path, write it in front of its name"
UNKNOWN = "arn:aws:iam::ACCOUNT:role/ROLE-OF-THE-PODS"
ASSUMING = ("sts:AssumeRole", "sts:TagSession")  # the second for sessions of EKS Pod Identity, which hand on their tags
READING = ("kinesis:DescribeStreamSummary", "kinesis:GetRecords", "kinesis:GetShardIterator", "kinesis:ListShards")
UNKNOWN_KEY, BAD_SIGNATURE = ("InvalidClientTokenId", "UnrecognizedClientException"), ("InvalidSignatureException", "SignatureDoesNotMatch")
DECRYPTING = ("kms:Decrypt",)
KEY = "the policy of the key has to allow it, too"
KMS = f"roleArn, or the pod's role without it, needs kms:Decrypt on the key of the stream; {KEY}"


def of_role(role: AssumedRole, message: str) -> str:
    """What to do if STS denies AssumeRole. `message` is its.

    It is repeated without what it says twice: a condition of a KinesisConsumer has room for both statements then.
    """
    match = SAID.search(message)
    of_it = f"{match['call'] if match else 'AssumeRole'} of {role.arn} was denied"
    denial = f"{of_it} to {match['caller']}{message[match.end() :]}" if match else f"{of_it}: {message}"
    return f"{denial}; {_elsewhere(message) or _assuming(role, message)}"


def of_request(role: AssumedRole, code: str, message: str, region: str) -> str | None:
    """What to do if STS answers AssumeRole with an error that stays until somebody acts; None for any other code (API reference, AssumeRole)."""
    advice = {
        "RegionDisabledException": (
            f"run `aws account get-region-opt-status --region-name {region}` in the accounts of the pods and of the role. If it is DISABLED, run "
            f"`aws account enable-region --region-name {region}`; otherwise activate the endpoint of {region} in IAM, Account settings"
        ),
        "ValidationError": (
            f"correct roleArn, externalId or sessionName; in the account of the role, `aws iam get-role --role-name {role.arn.rpartition('/')[2]}` "
            "prints its ARN"
        ),
        "PackedPolicyTooLarge": (
            "the session of the pod hands on too many tags. With EKS Pod Identity, run "
            "`aws eks update-pod-identity-association --disable-session-tags` with --cluster-name and --association-id of the pod's service account"
        ),
        **dict.fromkeys(UNKNOWN_KEY, "correct the AWS credentials that assume the role: `aws sts get-caller-identity` prints whose they are"),
        **dict.fromkeys(BAD_SIGNATURE, "correct this machine's clock, or the secret key of the AWS credentials that assume the role"),
    }.get(code)
    return advice and f"AssumeRole of {role.arn} was refused by STS in {region}: {code}: {message}; {advice}"


def _assuming(role: AssumedRole, message: str) -> str:
    match = SAID.search(message)
    caller, actions = (_role(match["caller"]), _with(ASSUMING, match)) if match else (UNKNOWN, ASSUMING)
    trust = f"the trust policy of that role needs {_trust(caller, actions, role.external_id)}"
    own = _statement({"Action": list(actions), "Resource": role.arn})
    asked = "" if role.external_id else "; if the trust policy asks for an external id, set externalId"
    silent = _silent(message)
    if silent == OF_IDENTITY:
        return f"a policy of {caller} needs {own}"
    if silent in {OF_RESOURCE, OF_TRUST}:
        return f"{trust}{_path(match)}{asked}"
    return f"{trust}, and a policy of that principal needs {own}{_path(match)}{asked}"


def _trust(caller: str, actions: tuple[str, ...], external_id: str | None) -> str:
    """What a trust policy needs. An external id is a condition of `sts:AssumeRole` alone: the others do not have it (IAM guide, session tags)."""
    if not external_id:
        return _trusting(caller, {"Action": list(actions)}, {})
    assume, *more = actions
    asked = _trusting(caller, {"Action": [assume]}, {"StringEquals": {"sts:ExternalId": external_id}})
    return f"{asked} and the same for {json.dumps(more)} without sts:ExternalId"


def of_call(code: str, message: str) -> str | None:
    """What would allow a call that Kinesis answers with this error code; None if nothing is known."""
    advice = of_stream(message) if code in {DENIED, KEY_DENIED} else None
    return advice or (KMS if code == KEY_DENIED else None)


def of_stream(message: str) -> str | None:
    """What would allow a call that Kinesis denies; None if its message does not name caller and stream, or the stream's key."""
    match = SAID.search(message)
    if not match or not match["resource"] or match["service"] not in {"kinesis", "kms"}:
        return None
    if elsewhere := _elsewhere(message):
        return elsewhere
    caller, resource = _role(match["caller"]), match["resource"]
    if match["service"] == "kms":
        return f"a policy of {caller} needs {_statement({'Action': list(_with(DECRYPTING, match)), 'Resource': resource})}; {KEY}"
    right = {"Action": list(_with(READING, match)), "Resource": resource}
    if _silent(message) == OF_RESOURCE:
        return f"the resource policy of {resource} needs {_trusting(caller, right, {})}{_path(match)}"
    return f"a policy of {caller} needs {_statement(right)}"


def _elsewhere(message: str) -> str | None:
    """What has to change if no statement of ours can help: a Deny, or a policy that only limits what others allow."""
    match = BECAUSE.search(message)
    if match is None or match["silent"] in {OF_IDENTITY, OF_RESOURCE, OF_TRUST}:
        return None
    if limit := match["silent"]:
        return f"the {limit} has to allow this call, and no Allow in another policy helps; ask whoever keeps it"
    return f"the {match['denying'] or 'policy'} has a Deny for this call, and no Allow helps; ask whoever keeps it"


def _silent(message: str) -> str | None:
    """The kind of policy that does not allow the call, if AWS says which."""
    match = BECAUSE.search(message)
    return match["silent"] if match else None


def _with(actions: tuple[str, ...], match: re.Match[str]) -> tuple[str, ...]:
    """These, and the one that was denied: a session may hand on more than its tags."""
    denied = f"{match['service']}:{match['call']}"
    return actions if denied in actions else (*actions, denied)


def _role(caller: str) -> str:
    """The role of a session; else the caller. A session does not say the path of its role."""
    match = ASSUMED.fullmatch(caller)
    return f"arn:{match['partition']}:iam::{match['account']}:role/{match['role']}" if match else caller


def _trusting(caller: str, right: dict[str, Any], condition: dict[str, Any]) -> str:
    """A statement that names the caller as its principal. IAM takes no principal that it does not know, so a person's role is named by its end."""
    account, _, name = caller.partition(":role/")
    if name.startswith(PERSONS):
        caller, condition = f"{account}:root", condition | {"ArnLike": {"aws:PrincipalArn": f"{account}:role/*/{name}"}}
    return _statement({"Principal": {"AWS": caller}, **right} | ({"Condition": condition} if condition else {}))


def _path(match: re.Match[str] | None) -> str:
    caller = match["caller"] if match else ""
    return PATH if ASSUMED.fullmatch(caller) and f"/{PERSONS}" not in caller else ""


def _statement(parts: dict[str, Any]) -> str:
    return json.dumps({"Effect": "Allow"} | parts)
