"""spec.stream: which stream is consumed, where it is, and the role that reads it. Pure."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from sluice_operator.names import STREAM_ARN, region_of
from sluice_operator.resource.part import SpecPart, Url

ROLE_ARN = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/([!-~]{1,510}/)?[a-zA-Z0-9_+=,.@-]{1,64}$"
RoleArn = Annotated[str, Field(max_length=640, pattern=ROLE_ARN)]
ExternalId = Annotated[str, Field(min_length=2, max_length=1224, pattern=r"^[a-zA-Z0-9_+=,.@:/-]+$")]
SessionName = Annotated[str, Field(min_length=2, max_length=64, pattern=r"^[a-zA-Z0-9_+=,.@-]+$")]
NEITHER = "name and region are required, or arn instead"
BOTH = "arn holds name and region; give either arn, or name and region"
PARTITIONS = "roleArn is of another partition than arn; no role of it can read the stream"
ELSEWHERE = "roleArn is of another partition than region; name a role of the partition of the stream"
OF_REGIONS = {
    "aws-cn": "cn-",
    "aws-us-gov": "us-gov-",
    "aws-iso": "us-iso-",
    "aws-iso-b": "us-isob-",
    "aws-iso-e": "eu-isoe-",
    "aws-iso-f": "us-isof-",
    "aws-eusc": "eusc-",
}
"""How names of regions begin, by partition. All others are regions of `aws`, or of a partition that came later."""
OF_ROLE = ("externalId", "sessionName")


def without_role(field: str) -> str:
    """What is wrong with this field if no role is given."""
    return f"{field} belongs to roleArn, and only to it"


class StreamSpec(SpecPart):
    """The Kinesis data stream that is consumed: name and region, or arn."""

    name: str | None = Field(default=None, min_length=1, max_length=128, pattern=r"^[a-zA-Z0-9_.-]+$")
    """Name of the stream; immutable. Not with arn."""
    region: str | None = Field(default=None, min_length=1, max_length=32, pattern=r"^[a-z0-9-]+$")
    """AWS region of the stream and of the checkpoint table; immutable. Not with arn."""
    arn: str | None = Field(default=None, max_length=256, pattern=f"^{STREAM_ARN}$")
    """ARN of the stream, for a stream of another account; immutable. It holds name and region, so it may replace those of the same stream."""
    role_arn: RoleArn | None = None
    """ARN of the role that reads the stream. Only Kinesis is called as this role, and each pod assumes it with its own role."""
    external_id: ExternalId | None = None
    """External id that the trust policy of roleArn asks for. It is not a secret."""
    session_name: SessionName | None = None
    """Name of the sessions of roleArn, as CloudTrail shows it. Default `sluice-` and the name of the consumer."""
    kinesis_endpoint: Url | None = None
    """Address of Kinesis, if it is not AWS's own: a VPC endpoint or an emulator."""
    dynamodb_endpoint: Url | None = None
    """Address of DynamoDB, if it is not AWS's own."""
    probe_share: Annotated[float, Field(ge=0.05, le=1)] | None = None
    """Share of a shard's five GetRecords calls per second that polls quiet shards. More is faster, and leaves less to others.
    Default 1 in the five minutes after a record, then 0.2. Set it if others poll the stream."""

    @model_validator(mode="after")
    def _one_stream(self) -> Self:
        if self.arn is None and (self.name is None or self.region is None):
            raise ValueError(f"{'region' if self.name else 'name'}: required; {NEITHER}")
        if self.arn is not None and (self.name is not None or self.region is not None):
            raise ValueError(BOTH)
        if self.role_arn is None and (extra := next((field for field in OF_ROLE if field in self.document()), None)):
            raise ValueError(without_role(extra))
        if self.role_arn:
            self._one_partition(self.role_arn.split(":")[1])
        return self

    def _one_partition(self, of_role: str) -> None:
        """No session of a role crosses partitions, so the first call would fail, and each one after it."""
        if self.arn and self.arn.split(":")[1] != of_role:
            raise ValueError(PARTITIONS)
        if any((of_role == name) != self.located_in.startswith(prefix) for name, prefix in OF_REGIONS.items()):
            raise ValueError(ELSEWHERE)

    @property
    def identifier(self) -> str:
        """The ARN where one was given, else the name."""
        return self.arn or self.name or ""

    @property
    def located_in(self) -> str:
        """The region."""
        return self.region or region_of(self.arn or "")

    @property
    def consumed(self) -> str | None:
        """What names this stream to a driver that writes with the pod's own role; None: it may be another account's, so no name does."""
        return self.arn or (None if self.role_arn else self.name)

    @property
    def options(self) -> dict[str, str | None]:
        """The options of a command that reads this stream and its tables: every Job has them from here (docs/interfaces.md)."""
        return {
            "--stream": self.identifier,
            "--region": self.located_in,
            "--role-arn": self.role_arn,
            "--external-id": self.external_id,
            "--role-session-name": self.session_name,
            "--kinesis-endpoint": self.kinesis_endpoint,
            "--dynamodb-endpoint": self.dynamodb_endpoint,
        }
