"""The user's side of a KinesisConsumerPool, and of a consumer in a pool: which field belongs to which of the two (docs/pools.md). Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from pydantic import Field, field_validator

from sluice_operator.resource import fields
from sluice_operator.resource import spark_conf as sparkconf
from sluice_operator.resource.fields import RestartSpec, Spec
from sluice_operator.resource.part import Account, SpecPart
from sluice_operator.resource.pipeline import PipelineSpec, PoolPipelineSpec
from sluice_operator.resource.pods import DriverSpec, ExecutorSpec

if TYPE_CHECKING:
    Json = dict[str, Any]

OF_NO_CONSUMER: dict[str, Any] = {"stream": {"name": "none", "region": "us-east-1"}}
NO_ENTRYPOINT = "none:none"
OWN = {"slotShare", "maxDriverDeaths"}  # fields that a consumer does not have


class PoolSpec(SpecPart):
    """A driver with its executors, which runs the batches of several KinesisConsumers. Durations are whole seconds."""

    replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    """Number of executors. 0 means that no driver runs either. With executor.inDriver, 0 or 1."""
    pipeline: PoolPipelineSpec = Field(default_factory=PoolPipelineSpec)
    slot_share: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Largest part of the task slots that one consumer may use at a time, if others need them. Default 0.25."""
    max_driver_deaths: Annotated[int, Field(ge=1, le=100)] = 3
    """Number of ends of the process in a row that name a member, after which the member is put out of the pool. Default 3."""
    drain_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 120
    """Maximum time that the pod or an executor may take to finish its work. Default 120."""
    restart: RestartSpec = Field(default_factory=RestartSpec)
    progress_deadline_seconds: Annotated[int, Field(ge=60, le=86_400)] = 600
    """How long a start or a change may take before the condition Stalled reports it. The operator keeps trying. Default 600."""
    suspend: bool = False
    """Whether the pod is stopped, and with it all consumers of the pool. No position is lost."""
    service_account_name: Account = "sluice-consumer"
    """Service account of the driver. If given, migrations use it as well, and executors that have none of their own.
    By default, the driver uses sluice-consumer, and executors and migrations use the chart's consumer.executorServiceAccount.
    Only the driver gets an API token."""
    driver: DriverSpec = Field(default_factory=DriverSpec)
    executor: ExecutorSpec = Field(default_factory=ExecutorSpec)
    spark_conf: dict[str, str] = Field(default_factory=dict)
    """Spark settings. Settings that belong to the operator or the protocol are refused."""

    _allowed = field_validator("spark_conf")(sparkconf.allowed)


def parse(raw: Json | str) -> PoolSpec:
    """The spec of a pool as written.

    Raises:
        InvalidSpec: with one sentence per field, at most five.
    """
    return _read(raw)[0]


def as_consumer(raw: Json | str) -> Spec:
    """The pool as the rules see it: a consumer of no stream, whose pod is the pool's.

    Raises:
        InvalidSpec: as `parse`.
    """
    return _read(raw)[1]


def _read(raw: Json | str) -> tuple[PoolSpec, Spec]:
    """Both, once for each text: every reconcile of every member asks for them. A spec that no text holds is invalid."""
    try:
        text = orjson.dumps(raw)
    except TypeError:
        return _validated(raw)
    return _remembered(text)


@lru_cache(maxsize=256)
def _remembered(text: bytes) -> tuple[PoolSpec, Spec]:
    return _validated(orjson.loads(text))


def _validated(raw: Json | str) -> tuple[PoolSpec, Spec]:
    own = fields.validated(raw, PoolSpec)
    given = dict(raw) if isinstance(raw, dict) else {}
    pipeline = {**(given.get("pipeline") or {}), "entrypoint": NO_ENTRYPOINT}
    return own, fields.parse({key: value for key, value in given.items() if key not in OWN} | OF_NO_CONSUMER | {"pipeline": pipeline})


def effective(member: Spec, pool: Spec | None) -> Spec:
    """What a consumer in a pool runs with. Its one executor is the pool; its Jobs take image, account and environment from there.

    Args:
        member: the consumer's own fields.
        pool: the pool's, as a consumer; None: they are not known.
    """
    return member.model_copy(update={**_shared(member, pool), "executor": ExecutorSpec.model_validate({"inDriver": True})})


def alone(member: Spec, pool: Spec) -> Spec:
    """What a consumer that was put out of a pool runs with: image, account, environment and sizes are the pool's."""
    return member.model_copy(update={**_shared(member, pool), "executor": pool.executor, "spark_conf": pool.spark_conf})


def _shared(member: Spec, pool: Spec | None) -> dict[str, Any]:
    theirs: dict[str, Any] = {}
    if pool is not None:
        shared = {name: getattr(pool.pipeline, name) for name in PoolPipelineSpec.model_fields}
        pipeline = PipelineSpec.model_construct(**shared, entrypoint=member.pipeline.entrypoint, args=member.pipeline.args)
        theirs |= {"pipeline": pipeline, "driver": pool.driver}
        if "service_account_name" in pool.model_fields_set:
            theirs["service_account_name"] = pool.service_account_name
    return theirs
