"""The configurations of a group: what keeps consumers out of one Spark, and the settings of that Spark. Pure, but for a sink's own questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sluice_checkpoints.errors import Refused
from sluice_consumer.config import Config
from sluice_consumer.spark.conf import EXTENSIONS

MAX_SECONDS = 600.0  # of a batch, where a configuration says nothing: it shares its slots with others
OWN = ("spark.app.name",)  # settings that each consumer may have its own of
FAIR = {
    "spark.scheduler.mode": "FAIR",
    # A lost lease leaves a sixth of it to prove that no task works. Spark's two seconds are for one consumer, which ends its process.
    "spark.python.task.killTimeout": "500ms",
}


@dataclass(frozen=True)
class Member:
    """One consumer of a group: its configuration, and the file that has it.

    Attributes:
        seat: its seat in a pool, which is an attempt of the consumer; "": it has none.
        spec_hash: what its version is called; "": as the environment says.
    """

    path: Path
    config: Config
    seat: str = ""
    spec_hash: str = ""

    @property
    def name(self) -> str:
        """Of the consumer, for people."""
        return self.config.name

    @property
    def key(self) -> str:
        """What it is called between the processes. No other one of the group has it."""
        return self.seat or self.name


def member(path: Path, config: Config) -> Member:
    """A consumer as it runs in a group."""
    return Member(path, in_group(config))


def in_group(config: Config) -> Config:
    """The configuration of a consumer, as it runs in a group."""
    if config.batch.max_seconds is None:
        config = replace(config, batch=replace(config.batch, max_seconds=MAX_SECONDS))
    return config


def check(members: Sequence[Member]) -> None:
    """Refuses consumers that cannot share a process.

    Raises:
        Refused: two have one name or one checkpoint table, or they disagree about Spark or about where metrics are served.
    """
    for what, of in (("name", _name), ("checkpoints.table", _table)):
        seen: dict[object, Member] = {}
        for member in members:
            if (other := seen.setdefault(of(member), member)) is not member:
                raise Refused(f"{member.path}: {what}: {other.path} has the same; give each consumer of a group its own")
    _agreed(members, "metrics", {member.name: member.config.metrics for member in members if member.config.metrics is not None})
    for key in sorted({key for member in members for key in member.config.spark_conf} - set(OWN)):
        _agreed(members, f"sparkConf.{key}", {member.name: member.config.spark_conf[key] for member in members if key in member.config.spark_conf})


def _name(member: Member) -> object:
    return member.name


def _table(member: Member) -> object:
    stream = member.config.stream
    return stream.region, stream.dynamodb_endpoint, member.config.checkpoints.table


def _agreed(members: Sequence[Member], what: str, given: Mapping[str, object]) -> None:
    first = next(iter(given), "")
    for name, value in given.items():
        if value != given[first]:
            paths = {member.name: member.path for member in members}
            raise Refused(f"{paths[name]}: {what}: {paths[first]} has another value, and all consumers of a group share one Spark; use one value")


def of_all(members: Sequence[Member]) -> Config:
    """The configuration that the session of the group is started with: the settings of all, and the shortest lease and time limit."""
    configs = [member.config for member in members]
    shared = {key: value for config in configs for key, value in config.spark_conf.items() if key not in OWN}
    least = min(config.batch.max_seconds or MAX_SECONDS for config in configs)
    return replace(
        configs[0],
        name=f"group of {len(configs)}",
        spark_conf=FAIR | shared,
        lease_duration_seconds=min(config.lease_duration_seconds for config in configs),
        batch=replace(configs[0].batch, max_seconds=least),
        metrics=next((config.metrics for config in configs if config.metrics is not None), None),
    )


def with_pipeline(whole: Config, member: Member) -> Config:
    """The configuration of the group, with the pipeline of one consumer, whose sink may ask for settings."""
    return replace(whole, pipeline=member.config.pipeline)


def joined(key: str, before: str | None, asked: str, by: Member) -> str:
    """A setting that sinks of two consumers ask for; extensions are a list.

    Raises:
        Refused: they ask for different values.
    """
    if before is None or before == asked:
        return asked
    if key == EXTENSIONS:
        return ",".join(dict.fromkeys([*before.split(","), *asked.split(",")]))
    raise Refused(f"{by.path}: its sink asks for {key}={asked}, and the sink of another consumer for {before}; run it outside of this group")
