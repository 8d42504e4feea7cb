"""The driver's configuration file (docs/interfaces.md), read strictly: a setting that this version does not know is refused. Pure."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import re
import shlex
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from sluice_checkpoints.aws.role import AssumedRole, RoleFields, assumed_role, check_partition, session_name_of
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.names import camel
from sluice_checkpoints.stream.address import STREAM_ARN, STREAM_NAME, StreamAddress, located

T = TypeVar("T")
TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")  # API reference, CreateTable
REGION = re.compile(r"(?!-)[a-z0-9-]{1,32}(?<!-)")  # the API server's rule; botocore makes a host name of it
QUEUE_URL = re.compile(r"https?://[^\s/]+/\S+")
STREAM = re.compile(f"{STREAM_NAME.pattern}|{STREAM_ARN.pattern}")
ROLE_FIELDS = RoleFields("stream.roleArn", "stream.externalId", "stream.sessionName")
MAX_SECONDS = 3600.0  # a batch is minutes of records at most; nothing that moves is ended by it
MAX_SECONDS_MOVING = 86_400.0
MAX_PORT = 65_535
TIP = "tip"
LEAST_SHARE = 0.05  # a probe every four seconds; an iterator is good for five minutes
KINDS: Mapping[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
A_TIME = "2026-11-26T12:00:00Z"
START_POSITIONS = ("TRIM_HORIZON", "LATEST", "AT_TIMESTAMP")


@dataclass(frozen=True)
class StreamConfig:
    """The stream, and the addresses of its services if they are not AWS's own.

    `probe_share`: of a shard's five GetRecords calls a second, for probes of quiet shards: seconds from probe to probe are 0.2 / share. None: all of
    them for a shard that had a record in the last five minutes, and 0.2 for others.
    It is given by name and region, or by `arn`. Name and region are there in any case, once the configuration is read.
    """

    name: str = ""
    region: str = ""
    kinesis_endpoint: str | None = None
    dynamodb_endpoint: str | None = None
    probe_share: float | None = None
    arn: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    session_name: str | None = None

    @property
    def role(self) -> AssumedRole | None:
        """The role that calls to Kinesis are made as.

        Raises:
            Refused: a setting of it is wrong.
        """
        return assumed_role(ROLE_FIELDS, self.role_arn, self.external_id, self.session_name)

    @property
    def options(self) -> str:
        """The options of a command that is about this stream (`sluice_checkpoints.cli.options`), as a shell takes them."""
        named = {"stream": self.arn or self.name, "region": self.region, "role-arn": self.role_arn, "external-id": self.external_id}
        named["role-session-name"] = self.session_name
        return " ".join(f"--{name} {shlex.quote(value)}" for name, value in named.items() if value)

    @property
    def address(self) -> StreamAddress:
        """Where the stream is, for all that call Kinesis."""
        return StreamAddress(self.name, self.region, self.kinesis_endpoint, arn=self.arn, role=self.role)


@dataclass(frozen=True)
class StartConfig:
    """Start position of a consumer without checkpoints. It has no effect once the checkpoint table exists."""

    position: str = "TRIM_HORIZON"
    timestamp: str | None = None

    @property
    def millis(self) -> int | None:
        """The timestamp in epoch milliseconds.

        Raises:
            Refused: it is missing where AT_TIMESTAMP needs it, given with another position, or not an ISO 8601 time with a zone.
        """
        if self.position not in START_POSITIONS:
            raise Refused(f"start.position: must be one of {', '.join(START_POSITIONS)}, not {self.position!r}")
        if self.position == "AT_TIMESTAMP":
            return _millis(self.timestamp, "start.timestamp")
        if self.timestamp is not None:
            raise Refused(f"start.timestamp: belongs to position AT_TIMESTAMP, not to {self.position}; remove it")
        return None


@dataclass(frozen=True)
class UntilConfig:
    """Where the run ends (docs/protocol.md, "Where a run ends"). Exactly one of the two is set.

    Attributes:
        tip: whether it ends once everything is processed that had arrived when the driver started.
        timestamp: end in each shard, in front of the first record that arrived then or later. ISO 8601 with a time zone.
    """

    tip: bool = False
    timestamp: str | None = None

    @property
    def millis(self) -> int | None:
        """The timestamp in epoch milliseconds; None for the tip.

        Raises:
            Refused: not exactly one of the two, or no ISO 8601 time with a zone.
        """
        if self.tip == (self.timestamp is not None):
            raise Refused("until: must have exactly one of tip (true) and timestamp")
        return None if self.tip else _millis(self.timestamp, "until.timestamp")

    @property
    def option(self) -> str:
        """The value of `--until` that says the same."""
        return self.timestamp or TIP


def until(end: str | None) -> UntilConfig | None:
    """What the option `--until` asks for: `tip` or a time. None: what the configuration says.

    Raises:
        Refused: it is neither.
    """
    if end is None:
        return None
    if end == TIP:
        return UntilConfig(tip=True)
    _ = _millis(end, "--until (tip or a time)")
    return UntilConfig(timestamp=end)


def with_end(config: Config, end: str | None) -> Config:
    """A configuration with the end that `--until` asks for, if it does.

    Raises:
        Refused: see `until`; or the end is not after the start.
    """
    config = dataclasses.replace(config, until=until(end) or config.until)
    _end_after_start(config)
    return config


def _end_after_start(config: Config) -> None:
    end = config.until
    begins, ends = config.start.millis, end.millis if end else None
    if end is None or begins is None or ends is None or begins < ends:
        return
    times = f"start.timestamp is {config.start.timestamp}, and the end {end.timestamp}"
    raise Refused(f"until.timestamp is not after start.timestamp, so there is nothing to read; name a later time ({times})")


def _millis(text: str | None, key: str) -> int:
    if text is None:
        raise Refused(f"{key}: missing; AT_TIMESTAMP needs a time such as {A_TIME}")
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(f"{key}: {text!r} is not an ISO 8601 time, such as {A_TIME}") from error
    if moment.tzinfo is None:
        raise Refused(f"{key}: {text!r} has no time zone; write it as {A_TIME}")
    return round(moment.timestamp() * 1000)


@dataclass(frozen=True)
class CheckpointsConfig:
    """The consumer's own table.

    Attributes:
        table: name of the DynamoDB table.
        tags: tags of the table, if the driver creates it.
        kms_key_arn: KMS key that encrypts the table, if the driver creates it. None: DynamoDB's own key.
    """

    table: str
    tags: Mapping[str, str] = field(default_factory=dict)
    kms_key_arn: str | None = None


@dataclass(frozen=True)
class MigrateFromConfig:
    """Set when the table must have been filled by a migration."""

    table: str


@dataclass(frozen=True)
class PipelineConfig:
    """Your code: `module:function`, and its arguments, which it finds in `info.args`."""

    entrypoint: str
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_built_in(self) -> bool:
        """Whether it is one of Sluice's sinks."""
        return self.entrypoint.startswith("sluice_consumer.")


@dataclass(frozen=True)
class BatchConfig:
    """Size of a micro-batch. Limits count the records and bytes of one shard in one batch.

    `interval_seconds` is from trigger to trigger; full shards are read on at once.

    Attributes:
        max_seconds: time after which a batch without progress stops the driver; with progress four times as long. None: 3600, and a day. 0: no limit.
    """

    interval_seconds: float = 5
    max_records_per_shard: int = 10_000
    max_bytes_per_shard: int = 8 * 1024 * 1024
    shards_per_task: int = 8
    max_seconds: float | None = None


@dataclass(frozen=True)
class DeadLetterConfig:
    """Destination of dead letters. Exactly one of the three is set.

    Attributes:
        path: folder on S3 (`s3a://`), HDFS or a disk.
        sqs: URL of a queue.
        kinesis: name or ARN of a stream.
    """

    path: str | None = None
    sqs: str | None = None
    kinesis: str | None = None


@dataclass(frozen=True)
class OnErrorConfig:
    """Handling of a batch on which `process` raises (docs/protocol.md, "Poison"). If omitted, the driver ends, and the batch comes again.

    Attributes:
        attempts: failures of a batch before it is shortened, and of a record before it is poison.
        isolate: whether Sluice searches for the record.
        dead_letter: destination of the record.
        max_excluded_per_hour: maximum number of records set aside per clock hour. One more stops the driver.
    """

    dead_letter: DeadLetterConfig | None = None
    attempts: int = 3
    isolate: bool = True
    max_excluded_per_hour: int = 100


@dataclass(frozen=True)
class MetricsConfig:
    """Where the driver serves its metrics.

    Attributes:
        port: TCP port. 0: any free port.
        address: address on which it listens. None: all addresses in a pod, loopback otherwise.
    """

    port: int
    address: str | None = None


@dataclass(frozen=True)
class Config:
    """The whole configuration of a driver.

    Attributes:
        format: version of this format.
        name: name of the consumer, in logs, metrics and files. If omitted, the stream's name.
        executors: number of executors, if the driver runs in a pod. None: as `spark_conf` says.
        force: whether the driver takes the lease at once, even if another one holds it. It then waits for that one's lease duration.
        accept_loss_of_batch: number of the batch whose expired records may be lost. None: the driver stops instead.
    """

    stream: StreamConfig
    checkpoints: CheckpointsConfig
    pipeline: PipelineConfig
    format: int = 1
    name: str = ""
    start: StartConfig = field(default_factory=StartConfig)
    until: UntilConfig | None = None
    migrate_from: MigrateFromConfig | None = None
    batch: BatchConfig = field(default_factory=BatchConfig)
    lease_duration_seconds: float = 20
    drain_timeout_seconds: float = 120
    executors: int | None = None
    force: bool = False
    accept_loss_of_batch: int | None = None
    metrics: MetricsConfig | None = None
    on_error: OnErrorConfig | None = None
    spark_conf: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lease_millis(self) -> int:
        """The promise this consumer's drivers make."""
        return round(self.lease_duration_seconds * 1000)


def configuration(path: Path) -> Config:
    """Reads the configuration file.

    Raises:
        Refused: there is none, or it is wrong.
    """
    return parse(text_of(path))


def text_of(path: Path) -> str:
    """A configuration file as it is.

    Raises:
        Refused: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Refused(f"--config {path}: {error.strerror}") from error


def check_format(number: int) -> None:
    """Makes sure that this version knows the format of a configuration.

    Raises:
        Refused: it does not.
    """
    if number != 1:
        raise Refused(f"format: {number} is not known to this version, which knows 1")


def parse(text: str) -> Config:
    """Reads a configuration.

    Raises:
        Refused: not JSON, a key that is unknown or missing, or a value of the wrong type or out of bounds; the message names the key.
    """
    config = read(Config, text)
    check_format(config.format)
    stream = _located(config.stream)
    config = dataclasses.replace(config, stream=stream, name=config.name or stream.name)
    _bounds(config)
    return dataclasses.replace(config, stream=_in_session(stream, config.name))


def read(kind: type[T], text: str) -> T:
    """Reads the JSON of a dataclass.

    Raises:
        Refused: not JSON, a key that is unknown or missing, or a value of the wrong type; the message names the key.
    """
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise Refused(f"the configuration is not JSON: {error}") from error
    return _read(kind, document, "")


def _located(stream: StreamConfig) -> StreamConfig:
    if stream.arn is None:
        if not stream.name or not stream.region:
            raise Refused(f"stream.{'region' if stream.name else 'name'}: missing; a stream has a name and a region, or an arn")
        return stream
    if extra := next((key for key in ("name", "region") if getattr(stream, key)), None):
        raise Refused(f"stream.{extra}: the stream already has an arn, which holds its name and region; remove one of the two")
    name, region = located(stream.arn, "stream.arn")
    return dataclasses.replace(stream, name=name, region=region)


def _in_session(stream: StreamConfig, consumer: str) -> StreamConfig:
    return dataclasses.replace(stream, session_name=stream.session_name or session_name_of(consumer)) if stream.role_arn else stream


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _bounds(config: Config) -> None:
    least = {
        "batch.intervalSeconds": (config.batch.interval_seconds, 0),
        "batch.maxRecordsPerShard": (config.batch.max_records_per_shard, 1),
        "batch.maxBytesPerShard": (config.batch.max_bytes_per_shard, 1),
        "batch.shardsPerTask": (config.batch.shards_per_task, 1),
        "batch.maxSeconds": (config.batch.max_seconds or 1, 1),
        "leaseDurationSeconds": (config.lease_duration_seconds, 3),
        "drainTimeoutSeconds": (config.drain_timeout_seconds, 1),
        "executors": (config.executors or 0, 0),
        "acceptLossOfBatch": (1 if config.accept_loss_of_batch is None else config.accept_loss_of_batch, 1),
        "metrics.port": (config.metrics.port if config.metrics else 0, 0),
    }
    for key, (value, bound) in least.items():
        if value < bound:
            raise Refused(f"{key}: must be {bound:g} or more, not {value}")
        if value == math.inf:  # JSON's 1e400
            raise Refused(f"{key}: {value} is not a number")
    if config.metrics and config.metrics.port > MAX_PORT:
        raise Refused(f"metrics.port: must be {MAX_PORT} or less, not {config.metrics.port}")
    if not TABLE_NAME.fullmatch(config.checkpoints.table):
        raise Refused(f"checkpoints.table: {config.checkpoints.table!r} is not the name of a DynamoDB table (3 to 255 of a-z, A-Z, 0-9, _ . -)")
    texts = {"checkpoints.tags": config.checkpoints.tags, "sparkConf": config.spark_conf}
    odd = [(f"{field}.{key}", value) for field, values in texts.items() for key, value in values.items() if not isinstance(value, str)]
    if odd:
        raise Refused(f"{odd[0][0]}: {odd[0][1]!r} is not a string")
    _stream_bounds(config.stream)
    if not re.fullmatch(r"[\w.]+:\w+", config.pipeline.entrypoint):
        raise Refused(f"pipeline.entrypoint: {config.pipeline.entrypoint!r} is not of the form module:function")
    if config.on_error:
        _on_error_bounds(config.on_error)
        _dead_letter_bounds(config.on_error.dead_letter, config.stream)
    _end_after_start(config)  # refused here, not when the first batch starts


def _stream_bounds(stream: StreamConfig) -> None:
    if not REGION.fullmatch(stream.region):
        raise Refused(f"stream.region: must be an AWS region, such as eu-west-1, not {stream.region!r}")
    check_partition(stream.role, stream.arn, stream.region, ROLE_FIELDS.role_arn)  # refused here, not at the first call
    if stream.probe_share is not None and not LEAST_SHARE <= stream.probe_share <= 1:
        raise Refused(f"stream.probeShare: {stream.probe_share} is not from {LEAST_SHARE} to 1; 0.2 is one of a shard's five calls a second")
    for key, endpoint in (("kinesisEndpoint", stream.kinesis_endpoint), ("dynamodbEndpoint", stream.dynamodb_endpoint)):
        if endpoint and not is_address(endpoint):
            raise Refused(f"stream.{key}: {endpoint!r} is not an address of a service; write it with its scheme, as in {_with_scheme(endpoint)}")


def is_address(url: str) -> bool:
    """Whether a service can be called there: scheme `http` or `https`, a host, and a port if one is given."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and url.isascii() and not re.search(r"\s", url)
    except ValueError:
        return False


def _with_scheme(endpoint: str) -> str:
    wanted = f"http{'s' * ('amazonaws.com' in endpoint)}://{endpoint.strip().lstrip('/')}"
    return wanted if "://" not in endpoint and is_address(wanted) else "http://localhost:4566"


def _on_error_bounds(on_error: OnErrorConfig) -> None:
    if on_error.attempts < 1:
        raise Refused(f"onError.attempts: must be 1 or more, not {on_error.attempts}")
    if on_error.max_excluded_per_hour < 0:
        raise Refused(f"onError.maxExcludedPerHour: must be 0 or more, not {on_error.max_excluded_per_hour}")
    if on_error.isolate and not on_error.dead_letter:
        raise Refused("onError.deadLetter: missing; set path, sqs or kinesis, to which records that are excluded go")


def _dead_letter_bounds(where: DeadLetterConfig | None, stream: StreamConfig) -> None:
    if where is None:
        return
    given = dataclasses.asdict(where)
    if sum(map(bool, given.values())) != 1:
        raise Refused(f"onError.deadLetter: must have exactly one of {', '.join(given)}")
    if where.sqs and not QUEUE_URL.fullmatch(where.sqs):
        raise Refused(
            f"onError.deadLetter.sqs: {where.sqs!r} is not the URL of a queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/letters"
        )
    if where.kinesis and not STREAM.fullmatch(where.kinesis):
        raise Refused(f"onError.deadLetter.kinesis: {where.kinesis!r} is neither name nor ARN of a stream")
    if where.kinesis == (stream.arn or (None if stream.role_arn else stream.name)):
        same = "stream.arn" if stream.arn else "stream.name"
        raise Refused(f"onError.deadLetter.kinesis: is the same as {same}; its dead letters would come as records, so name another stream")


def _read(kind: type[T], document: Any, where: str) -> T:
    if not isinstance(document, dict):
        raise Refused(f"{where or 'the configuration'}: expected an object, not {document!r}")
    hints = typing.get_type_hints(kind)
    fields = {camel(f.name): f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]  # every T here is a dataclass
    if unknown := sorted(set(document) - set(fields)):
        raise Refused(f"{where}{unknown[0]}: unknown setting; this version knows {', '.join(sorted(fields))}")
    required = (k for k, f in fields.items() if f.default is f.default_factory is dataclasses.MISSING)
    if missing := [key for key in required if document.get(key) is None]:
        raise Refused(f"{where}{missing[0]}: missing")
    values = {fields[k].name: _value(hints[fields[k].name], v, where + k) for k, v in document.items()}
    # An explicit null means the default, as in Kubernetes.
    return kind(**{name: value for name, value in values.items() if value is not None})


def _value(hint: Any, value: Any, where: str) -> Any:
    if value is None:
        return None
    if isinstance(hint, types.UnionType):
        (hint,) = (a for a in typing.get_args(hint) if a is not type(None))
    if dataclasses.is_dataclass(hint):
        return _read(typing.cast("type[Any]", hint), value, where + ".")
    wanted: Any = dict if typing.get_origin(hint) is not None else (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        raise Refused(f"{where}: must be {KINDS.get(hint, 'an object')}, not {value!r}")
    return value
