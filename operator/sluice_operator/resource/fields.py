"""The user's side of a KinesisConsumer: fields, bounds, defaults, and messages that name the field.

The CRD is generated from these models (`generate.crd`), so the API server refuses what a schema can express. `parse` repeats that,
and adds what a schema cannot express. Nothing here knows a cluster.
"""

from __future__ import annotations

import difflib
import json
from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from sluice_operator.names import LETTER_PLACES, STREAM_ARN
from sluice_operator.resource import spark_conf as sparkconf
from sluice_operator.resource import wording
from sluice_operator.resource.part import Account, AttributeName, PoolName, RowKey, Seconds, ShardPlace, SpecPart, Table, Time
from sluice_operator.resource.pipeline import PipelineSpec, PoolPipelineSpec
from sluice_operator.resource.pod_template import with_shared
from sluice_operator.resource.pods import IN_DRIVER, ONE_SCALER, AutoscaleSpec, DriverSpec, ExecutorSpec
from sluice_operator.resource.positions import PositionSpec, StartSpec, UntilSpec
from sluice_operator.resource.rollout import NO_TRIAL_OF_A_RUN, WITHOUT_END, RolloutSpec
from sluice_operator.resource.stream import StreamSpec
from sluice_operator.untrusted import bounds

DEAD_LETTER_STREAM = f"^([a-zA-Z0-9_.-]{{1,128}}|{STREAM_ARN})$"
MAX_BYTES = 64 * 1024  # the driver's whole configuration travels in annotations, which hold 256 KiB together
VALUES = 8192  # values and keys: a pass looks at each of them several times
TOO_LARGE = f"larger than {MAX_BYTES} bytes or {VALUES} values; move code and data into the image"


AnySpec = TypeVar("AnySpec", bound=SpecPart)
MAX_TAGS, TAG_NAME, TAG_VALUE = 50, 128, 256  # DynamoDB's


OF_POOL = "belongs to the pool {}; remove it here, or remove spec.pool to run this consumer in a driver of its own"
ONE_SEAT = "must be 0 or 1 with pool, because the pool has the executors"
SHORTEST_LEASE = 20  # seconds, of a member: executors of a pool that are cut off fall silent within a third of it
LONGER_LEASE = f"must be {SHORTEST_LEASE} or more with pool; raise it, or remove spec.pool to run this consumer in a driver of its own"


class InvalidSpec(ValueError):
    """The spec cannot be carried out; the message names each field and what to do."""


class CheckpointsSpec(SpecPart):
    """Table that stores the positions."""

    table: Table | None = None
    """Name of the DynamoDB table. Default `sluice_<namespace>_<name>`. Immutable, even if it was omitted at first."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags of the table, if Sluice creates it."""
    kms_key_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$")
    """KMS key that encrypts the table, if Sluice creates it. Default DynamoDB's own key."""

    @field_validator("tags")
    @classmethod
    def _are_tags(cls, tags: dict[str, str]) -> dict[str, str]:
        if len(tags) > MAX_TAGS:
            raise ValueError(f"must have at most {MAX_TAGS} tags, which is what DynamoDB allows")
        for name, value in tags.items():
            if not name or len(name) > TAG_NAME or len(value) > TAG_VALUE or name.lower().startswith("aws:") or "=" in name:
                what = f"must have 1 to {TAG_NAME} characters without =, must not begin with aws:, and its value has at most {TAG_VALUE}"
                raise ValueError(f"{name!r}: {what}")
        return tags


class MigrateFromSpec(SpecPart):
    """Checkpoint table of another consumer. It is read once, before the first start, and never written."""

    table: Table
    """Name of the table, in the stream's region."""
    format: Literal["Auto", "KCL", "NiFi", "VmwareGoKcl", "Kinsumer", "Sluice"] = "Auto"
    """System that wrote the table. Auto (default) recognises it by key schema and attributes."""
    unstarted: Literal["TrimHorizon", "Now"] = "TrimHorizon"
    """Start position of shards that the other consumer had never started: TrimHorizon (default) or Now."""
    quiet_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """Time in seconds for which the source must be unchanged to count as stopped. The default depends on the format."""
    timestamp: Time | None = None
    """Start time for rows whose checkpoint is AT_TIMESTAMP, since they hold no time."""
    ignore_attributes: Annotated[list[AttributeName], Field(max_length=32)] = Field(default_factory=list)
    """Attributes of the table to ignore. Only attributes that the format does not know are allowed."""
    ignore_rows: Annotated[list[RowKey], Field(max_length=32)] = Field(default_factory=list)
    """Keys of rows of the table to ignore. None may be the row of a shard."""
    places: Annotated[list[ShardPlace], Field(max_length=256)] = Field(default_factory=list)
    """Start positions of shards, whatever the table says: `SHARD=trim-horizon`, `SHARD=END`, or `SHARD=` and the number of the last record read."""


LEAST_MAX_SECONDS = 30


class BatchSpec(SpecPart):
    """Size and pace of batches."""

    interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    """Time from the start of one batch to the start of the next. Full shards are read on at once. Default 5."""
    max_records_per_shard: Annotated[int, Field(ge=1, le=10_000_000)] = 10_000
    """Maximum number of records of one shard in a batch. Default 10000."""
    max_bytes_per_shard: Annotated[int, Field(ge=1_048_576, le=1_073_741_824)] = 8_388_608
    """Maximum number of bytes of one shard in a batch. Default 8 MiB."""
    shards_per_task: Annotated[int, Field(ge=1, le=1000)] = 8
    """Maximum number of shards that one Spark task reads at the same time. Default 8."""
    max_seconds: Annotated[int, Field(ge=0, le=86_400)] | None = None
    """Time after which a batch without progress stops the driver with reason BatchOverdue. Default 3600. 0 means no limit, otherwise 30 or more.

    A batch that makes progress may take four times as long, or a day if this is omitted."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max_seconds is not None and 0 < self.max_seconds < LEAST_MAX_SECONDS:
            raise ValueError(f"maxSeconds: must be 0 (no limit), or {LEAST_MAX_SECONDS} or more")
        return self


ONE_PLACE = f"must have exactly one of {', '.join(LETTER_PLACES[:-1])} and {LETTER_PLACES[-1]}"


class DeadLetterSpec(SpecPart):
    """Destination of dead letters: exactly one of path, sqs and kinesis."""

    path: str | None = Field(default=None, min_length=1, max_length=1024, pattern=r"^(s3a|hdfs|file)://\S+$")
    """Folder: s3a://bucket/folder, hdfs:// or file:// (a volume of the driver's pod)."""
    sqs: str | None = Field(default=None, max_length=512, pattern=r"^https?://[^\s/]+/\S+$")
    """URL of an SQS queue. The queue is FIFO if the URL ends with .fifo."""
    kinesis: str | None = Field(default=None, max_length=256, pattern=DEAD_LETTER_STREAM)
    """Kinesis stream: its name, in the region of spec.stream, or its ARN. It must not be the stream that is consumed."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if len(self.document()) != 1:
            raise ValueError(ONE_PLACE)
        return self


class OnErrorSpec(SpecPart):
    """Handling of a batch on which `process` raises. If omitted, the batch comes again until it passes, and nothing after it is read."""

    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    """How often a batch may fail before Sluice searches for the record that causes the failure. Default 3."""
    isolate: bool = True
    """Whether Sluice searches for the record, writes it to the dead letters and leaves it out. Default true."""
    dead_letter: DeadLetterSpec | None = None
    """Destination of such a record. Required unless isolate is false."""
    max_excluded_per_hour: Annotated[int, Field(ge=0, le=1_000_000)] = 100
    """Maximum number of records set aside per clock hour. One more stops the driver with reason TooMuchPoison. Default 100."""

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.isolate and self.dead_letter is None:
            raise ValueError("deadLetter: required; it stores the records that are left out")
        return self


class RestartSpec(SpecPart):
    """Pause between a failed driver and the next one. It doubles with each failure, up to the maximum."""

    backoff_seconds: Seconds = 10
    """First pause; default 10."""
    max_backoff_seconds: Seconds = 300
    """Longest pause; default 300."""
    reset_after_seconds: Seconds = 600
    """Running time of a driver after which earlier failures are forgotten, and after which its own failure causes no pause. Default 600."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max_backoff_seconds < self.backoff_seconds:
            raise ValueError("maxBackoffSeconds is shorter than backoffSeconds")
        return self


class Spec(SpecPart):
    """A consumer of one Kinesis stream. Durations are whole seconds."""

    stream: StreamSpec
    start: StartSpec = Field(default_factory=StartSpec)
    until: UntilSpec | None = None
    position: PositionSpec | None = None
    checkpoints: CheckpointsSpec = Field(default_factory=CheckpointsSpec)
    migrate_from: MigrateFromSpec | None = None
    replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    """Number of executors. 0 means that no driver runs either. With executor.inDriver, 0 or 1. With autoscale, omitted or 1."""
    autoscale: AutoscaleSpec | None = None
    rollout: RolloutSpec | None = None
    pool: PoolName | None = None
    """KinesisConsumerPool of the namespace in whose driver this consumer runs. Default: a driver of its own.
    Image, environment, accounts and sizes belong to the pool then (docs/pools.md)."""
    pipeline: PipelineSpec
    batch: BatchSpec = Field(default_factory=BatchSpec)
    on_error: OnErrorSpec | None = None
    lease_duration_seconds: Annotated[int, Field(ge=10, le=3600)] = 20
    """How long a new driver waits after a driver is lost before it takes over. Default 20."""
    drain_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 120
    """Maximum time that a driver or executor may take to finish its work. Default 120."""
    restart: RestartSpec = Field(default_factory=RestartSpec)
    progress_deadline_seconds: Annotated[int, Field(ge=60, le=86_400)] = 600
    """How long a start, a change or one batch may take before the condition Stalled reports it. The operator keeps trying. Default 600."""
    suspend: bool = False
    """Whether migration and driver are stopped. No position is lost."""
    service_account_name: Account = "sluice-consumer"
    """Service account of the driver. If given, migrations use it as well, and executors that have none of their own.
    By default, the driver uses sluice-consumer, and executors and migrations use the chart's consumer.executorServiceAccount.
    Only the driver gets an API token."""
    driver: DriverSpec = Field(default_factory=DriverSpec)
    executor: ExecutorSpec = Field(default_factory=ExecutorSpec)
    spark_conf: dict[str, str] = Field(default_factory=dict)
    """Spark settings. Settings that belong to the operator or the protocol are refused."""

    @property
    def driver_template(self) -> dict[str, Any]:
        """The template of the driver's pod and the migration's: spec.driver.podTemplate, and what all pods share under it."""
        return with_shared(self.driver.pod_template, "driver", self.pipeline.shared)

    @property
    def executor_template(self) -> dict[str, Any]:
        """The template of executor pods."""
        return with_shared(self.executor.pod_template, "executor", self.pipeline.shared)

    _allowed = field_validator("spark_conf")(sparkconf.allowed)

    @model_validator(mode="after")
    def _own_table(self) -> Self:
        if self.migrate_from and self.migrate_from.format != "Sluice" and self.migrate_from.table == self.checkpoints.table:
            raise ValueError("migrateFrom.table is the same as checkpoints.table; a source is only read, so name another table")
        return self

    @model_validator(mode="after")
    def _end_after_start(self) -> Self:
        begins, ends = self.start.timestamp, self.until and self.until.timestamp
        if begins and ends and datetime.fromisoformat(begins) >= datetime.fromisoformat(ends):
            raise ValueError("until.timestamp is not after start.timestamp, so there is nothing to read; name a later time")
        return self

    @model_validator(mode="after")
    def _end_after_position(self) -> Self:
        moved, ends = self.position and self.position.to.timestamp, self.until and self.until.timestamp
        if moved and ends and datetime.fromisoformat(moved) >= datetime.fromisoformat(ends):
            raise ValueError("position.to.timestamp is not before until.timestamp, so there is nothing to read; name an earlier time")
        return self

    @model_validator(mode="after")
    def _one_place_for_tasks(self) -> Self:
        if self.executor.in_driver and self.replicas > 1:
            raise ValueError("replicas: must be 0 or 1 with executor.inDriver, because only the driver's pod runs tasks")
        return self

    @model_validator(mode="after")
    def _one_scaler(self) -> Self:
        if self.autoscale and self.replicas != 1:
            raise ValueError(ONE_SCALER)
        if self.autoscale and self.executor.in_driver:
            raise ValueError(IN_DRIVER)
        return self

    @model_validator(mode="after")
    def _no_standby_of_a_run_with_an_end(self) -> Self:
        if self.until and self.rollout and self.rollout.stands_by:
            raise ValueError(WITHOUT_END)
        if self.until and self.rollout and self.rollout.trial:
            raise ValueError(NO_TRIAL_OF_A_RUN)
        return self

    @model_validator(mode="after")
    def _letters_elsewhere(self) -> Self:
        letters = self.on_error.dead_letter.kinesis if self.on_error and self.on_error.dead_letter else None
        if letters and letters == self.stream.consumed:
            same = "arn" if self.stream.arn else "name"
            raise ValueError(
                f"onError.deadLetter.kinesis is the same as stream.{same}; its dead letters would come as records, so name another stream"
            )
        return self


def parse(raw: dict[str, Any] | str) -> Spec:
    """The spec as written in the resource.

    Raises:
        InvalidSpec: with one sentence per field, at most five.
    """
    spec = validated(raw, Spec)
    if spec.pool is not None and (theirs := _of_pool(spec)):
        raise InvalidSpec("; ".join(theirs[:5]))
    return spec


def validated(raw: dict[str, Any] | str, model: type[AnySpec]) -> AnySpec:
    """The spec of a consumer or of a pool, by its fields.

    Raises:
        InvalidSpec: with one sentence per field, at most five.
    """
    if isinstance(raw, str):
        raise InvalidSpec(f"spec: {raw}")  # the text that replaces a spec that was not read
    if unusable := bounds.problem(raw, "spec", VALUES, TOO_LARGE):
        raise InvalidSpec(unusable)
    if len(json.dumps(raw)) > MAX_BYTES:
        raise InvalidSpec(f"spec: {TOO_LARGE}")
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise InvalidSpec("; ".join(sentence(dict(item), model) for item in error.errors()[:5])) from None


def _of_pool(spec: Spec) -> list[str]:
    """The fields of a consumer in a pool that belong to the pool or do not fit it, one sentence each.

    The API server writes defaults out, so these are none.
    """
    pipeline, plain = spec.pipeline, PoolPipelineSpec()
    named = {f"pipeline.{item.alias}": getattr(pipeline, name) != getattr(plain, name) for name, item in PoolPipelineSpec.model_fields.items()}
    named |= {
        "serviceAccountName": "service_account_name" in spec.model_fields_set,
        "driver": spec.driver != DriverSpec(),
        "executor": spec.executor != ExecutorSpec(),
        "sparkConf": bool(spec.spark_conf),
        "autoscale": spec.autoscale is not None,
        "rollout": spec.rollout is not None,
    }
    given = [f"spec.{field}: {OF_POOL.format(spec.pool)}" for field, is_given in named.items() if is_given]
    given += [f"spec.replicas: {ONE_SEAT}"] if spec.replicas > 1 else []
    return given + ([f"spec.leaseDurationSeconds: {LONGER_LEASE}"] if spec.lease_duration_seconds < SHORTEST_LEASE else [])


def sentence(error: dict[str, Any], model: type[SpecPart]) -> str:
    """An entry of pydantic's list, in words."""
    where = ".".join(["spec", *map(str, error["loc"])])
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown field{_suggestion(error['loc'], model)}"
    if error["type"] == "missing":
        return f"{where}: required"
    return f"{where}: {wording.problem(error)}"


def _suggestion(loc: tuple[Any, ...], model: type[SpecPart]) -> str:
    at: Any = model
    for name in (each for each in loc[:-1] if isinstance(each, str)):
        field = next((item for item in at.model_fields.values() if item.alias == name), None)
        at = _model_of(field.annotation) if field else None
        if at is None:
            return ""
    names = [item.alias for item in at.model_fields.values()]
    close = difflib.get_close_matches(str(loc[-1]), names, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _model_of(annotation: Any) -> type[SpecPart] | None:
    choices = [annotation, *getattr(annotation, "__args__", ())]
    return next((item for item in choices if isinstance(item, type) and issubclass(item, SpecPart)), None)
