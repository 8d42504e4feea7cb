"""Two accounts on one emulator (moto) behind a proxy: IAM as far as roles and sessions go, which no emulator does.

It notes the key and the account of every call. A role is assumed by whom it trusts, with its external id. A session ends, and does only what its role
may do. The refusals have the words of AWS (IAM guide, "Troubleshoot access denied error messages"). Signatures are not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock
from urllib.parse import parse_qs

from sluice_lab.aws.proxy import ProxiedCall, ProxiedReply

KEY = re.compile(r"Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/(?P<service>[^/]+)/")
OWN_ACCOUNT, OTHER_ACCOUNT = "123456789012", "444455556666"  # the first is moto's, for any key that it does not know
POD = f"arn:aws:sts::{OWN_ACCOUNT}:assumed-role/sluice-driver/pod"
EXPIRED = "The security token included in the request is expired"
CHAINED_SECONDS = 3600  # the pods' own credentials are a role's session, too
CHAINED = "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by role chaining."
READ = frozenset({"DescribeStreamSummary", "ListShards", "GetShardIterator", "GetRecords"})


@dataclass
class Role:
    """A role of the other account; any of it may change while it is used.

    Attributes:
        trusted: whether the pods' role is in its trust policy.
        strangers: keys of pods that it does not trust, though it trusts the others.
        may: actions of Kinesis.
    """

    arn: str = f"arn:aws:iam::{OTHER_ACCOUNT}:role/orders-reader"
    external_id: str | None = None
    trusted: bool = True
    strangers: frozenset[str] = frozenset()
    may: frozenset[str] = READ


@dataclass(frozen=True)
class NotedCall:
    """A call that came, whatever became of it.

    Attributes:
        by: the key of the pod that made it: the call's own, or the one with which its session was begun.
        named: of a call to Kinesis, how it names the stream: `StreamARN`, `StreamName`, both or none.
        arn: the stream's ARN in its body; "*" without one.
        status: of its reply.
    """

    service: str
    action: str
    key: str
    by: str
    account: str
    named: frozenset[str]
    arn: str
    status: int


@dataclass
class Accounts:
    """`around` of a proxy. `seconds`: how long a session lasts. `own_key`: that of the pods.

    Attributes:
        own_may: actions of Kinesis that the pods may call on streams of their own account, without a session.
        pod_seconds: how long the key lasts that a pod gets for a web identity.
        calls: in their order.
        ends: when each session ends, by its key.
        pod_ends: when a key of a pod ends; one that is not here lasts.
        begun_by: the key with which each session was begun, by its key.
        secrets: secret keys and tokens of all sessions.
        trouble: error code and status with which STS answers now; None: it works.
    """

    role: Role
    seconds: float = 3600.0
    own_key: str = "tests"
    own_may: frozenset[str] = frozenset()
    pod_seconds: float = 3600.0
    trouble: tuple[str, int] | None = None
    calls: list[NotedCall] = field(default_factory=list)
    ends: dict[str, datetime] = field(default_factory=dict)
    pod_ends: dict[str, datetime] = field(default_factory=dict)
    begun_by: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def around(self, call: ProxiedCall, forward: Callable[[], ProxiedReply]) -> ProxiedReply:
        signed = KEY.search(call.headers.get("Authorization") or "")
        if not signed:
            return self._of_web_identity(call, forward)
        service, key = signed["service"], signed["key"]
        reply = self._answer(call, service, key, forward)
        with self.lock:
            account, by = (OTHER_ACCOUNT, self.begun_by[key]) if key in self.ends else (OWN_ACCOUNT, key)
            self.calls.append(NotedCall(service, _action(call), key, by, account, _named(call), _arn(call), reply[0]))
        return reply

    def _answer(self, call: ProxiedCall, service: str, key: str, forward: Callable[[], ProxiedReply]) -> ProxiedReply:
        if self._is_over(key):
            return _of_sts("ExpiredToken", 403, EXPIRED) if service == "sts" else _refused("ExpiredTokenException", EXPIRED)
        match service:
            case "sts":
                return self._assumed(call, forward, key)
            case "kinesis" if _action(call) not in READ:
                return forward()  # a producer's
            case "kinesis" if key not in self.ends and _action(call) not in self.own_may:
                return _denied(POD, _action(call), _arn(call), "no resource-based policy")
            case "kinesis" if key in self.ends and _action(call) not in self.role.may:
                return _denied(self._session(), _action(call), _arn(call), "no identity-based policy")
            case _:
                return forward()

    def _assumed(self, call: ProxiedCall, forward: Callable[[], ProxiedReply], key: str) -> ProxiedReply:
        asked, role = _form(call), self.role
        if self.trouble:
            return _of_sts(*self.trouble, "said STS")
        if int(asked.get("DurationSeconds", CHAINED_SECONDS)) > CHAINED_SECONDS:
            return _of_sts("ValidationError", 400, CHAINED)
        if not role.trusted or key in role.strangers or asked["RoleArn"] != role.arn or asked.get("ExternalId") != role.external_id:
            return _not_assumed(call)
        session, ends, reply = _issued(forward(), self.seconds)
        with self.lock:
            self.ends[session], self.begun_by[session] = ends, key
            self.secrets.update(re.findall(r"<(?:SecretAccessKey|SessionToken)>(.+?)<", reply[2].decode()))
        return reply

    def _of_web_identity(self, call: ProxiedCall, forward: Callable[[], ProxiedReply]) -> ProxiedReply:
        if b"Action=AssumeRoleWithWebIdentity" not in call.body:
            return forward()
        pod, ends, reply = _issued(forward(), self.pod_seconds)
        with self.lock:
            self.pod_ends[pod] = ends
        return reply

    def revoke(self) -> None:
        """Ends all sessions now, whatever was said of their time."""
        self.ends = dict.fromkeys(self.ends, datetime.now(UTC))

    def _is_over(self, key: str) -> bool:
        ends = self.ends.get(key) or self.pod_ends.get(key)
        return ends is not None and ends <= datetime.now(UTC)

    def _session(self) -> str:
        return f"arn:aws:sts::{OTHER_ACCOUNT}:assumed-role/{self.role.arn.rpartition('/')[2]}/sluice"


def _issued(reply: ProxiedReply, seconds: float) -> tuple[str, datetime, ProxiedReply]:
    """The key in a reply of STS, when it ends, and the reply that says so."""
    status, headers, body = reply
    ends = datetime.now(UTC) + timedelta(seconds=seconds)
    text = re.sub("<Expiration>.*?</Expiration>", f"<Expiration>{ends.isoformat()}</Expiration>", body.decode())
    return text.partition("<AccessKeyId>")[2].partition("<")[0], ends, (status, headers, text.encode())


def _form(call: ProxiedCall) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(call.body.decode()).items()}


def _not_assumed(call: ProxiedCall) -> ProxiedReply:
    said = f"User: {POD} is not authorized to perform: sts:AssumeRole on resource: {_form(call)['RoleArn']}"
    return _of_sts("AccessDenied", 403, said)


def _of_sts(code: str, status: int, said: str) -> ProxiedReply:
    body = f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{said}</Message></Error></ErrorResponse>"
    return status, [("Content-Type", "text/xml")], body.encode()


def _action(call: ProxiedCall) -> str:
    target = call.headers.get("X-Amz-Target")
    return target.rpartition(".")[2] if target else _form(call).get("Action", "")


def _named(call: ProxiedCall) -> frozenset[str]:
    return frozenset(name for name in ("StreamARN", "StreamName") if name.encode() in call.body)


def _arn(call: ProxiedCall) -> str:
    found = re.search(rb"arn:aws:kinesis:[\w:/.-]+", call.body)
    return found[0].decode() if found else "*"


def _denied(caller: str, action: str, resource: str, why: str) -> ProxiedReply:
    said = f"User: {caller} is not authorized to perform: kinesis:{action} on resource: {resource} because {why} allows the kinesis:{action} action"
    return _refused("AccessDeniedException", said)


def _refused(code: str, said: str) -> ProxiedReply:
    body = json.dumps({"__type": code, "message": said}).encode()
    return 400, [("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-errortype", code)], body
