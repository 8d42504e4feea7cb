"""Spark's settings for a driver: what the user gave, then what the protocol needs, which wins. Pure.

Each setting of ours names the rule it serves (docs/protocol.md, "An epoch"; docs/architecture.md, "Spark: measured choices").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sluice_consumer.config import MAX_SECONDS, Config
from sluice_consumer.spark import python_workers

HEARTBEAT_FAILURES = 2
LOCAL_HEARTBEAT = "2s"  # figures of running tasks come with it: a batch that moves is seen to
LOG_LEVEL = "WARN"
# A no-op script in the image: the signal decommissions, and Spark insists on a file for its preStop hook.
DECOMMISSION_SCRIPT = "/opt/sluice/decommission"
# In the image: Spark's classes as a JVM maps them, and the class path that they belong to (consumer/image/training).
# An archive that does not fit is not used.
CLASS_PATH = "/opt/sluice/spark/classpath.jar"
SHARED_CLASSES = "-XX:SharedArchiveFile=/opt/sluice/spark.jsa -Xlog:cds*=off"
# Every access of Spark's to an Arrow buffer looks at its bounds else: a ninth of a record's CPU while catching up (docs/performance.md).
NO_BOUNDS_CHECKS = "-Darrow.enable_unsafe_memory_access=true"
# Java's second compiler takes what is called ten times as often as Java's default asks for. A third of a JVM's CPU until its first batch went into
# code that a start runs some thousand times, and a batch hardly ever (docs/performance.md, "A driver's start").
LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
JVM = f"{NO_BOUNDS_CHECKS} {LATE_COMPILER}"
# Idle Python workers that a JVM keeps of each kind. Else it keeps as many as ever worked at a time: of forty consumers that start together, forty
# that make a source and forty that plan, 26 MB each (docs/pools.md). A task may need a worker that reads and three functions of the user's.
WORKERS_OF_A_SLOT = 4


@dataclass(frozen=True)
class PodAddress:
    """The driver's own pod."""

    name: str
    namespace: str
    ip: str
    uid: str


EXTENSIONS = "spark.sql.extensions"


def settings(config: Config, pod: PodAddress | None, master: str | None = None, sink: Mapping[str, str] | None = None) -> dict[str, str]:
    """Every setting of the session. Without a pod (a laptop), nothing that only Kubernetes understands.

    Args:
        config: the driver's configuration.
        pod: its own pod, if it runs in one.
        master: overrides `sparkConf`'s `spark.master`; where neither says anything it is `local[2]`.
        sink: what the sink asks of the session (`sinks.settings`). `sparkConf` overrides it, but an extension of the sink's is added to its own.
    """
    where = {"spark.master": master or config.spark_conf.get("spark.master", "local[2]")}
    alone = is_local(where["spark.master"])
    ours = _protocol() | ({} if alone else cut_off(config)) | (_cluster(pod) if pod and not alone else {})
    executors = {} if config.executors is None or pod is None or alone else {"spark.executor.instances": str(config.executors)}
    image = {"spark.driver.extraClassPath": CLASS_PATH, "spark.driver.defaultJavaOptions": f"{SHARED_CLASSES} {JVM}"} if pod else {}
    asked = _of_sink(sink or {}, config.spark_conf)
    return {
        **_defaults(config, slots_of(where["spark.master"], config.spark_conf)),
        **image,
        **config.spark_conf,
        **asked,
        **executors,
        **ours,
        **where,
    }


def _of_sink(sink: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """What `sparkConf` leaves to the sink; extensions are a list."""
    asked = {name: value for name, value in sink.items() if name not in given}
    if EXTENSIONS in sink and EXTENSIONS in given:
        asked[EXTENSIONS] = ",".join(dict.fromkeys([*str(given[EXTENSIONS]).split(","), sink[EXTENSIONS]]))
    return asked


def _defaults(config: Config, slots: int | None) -> dict[str, str]:
    return {
        "spark.app.name": config.name,
        "spark.log.level": LOG_LEVEL,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # 40 ms of every Python task are spent waiting on loopback TCP otherwise (measured: docs/architecture.md).
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": "/tmp",  # noqa: S108 - Linux takes 107 characters, and `java.io.tmpdir` of a YARN container has more
        # Workers that Spark hangs up on say nothing of it.
        "spark.python.daemon.module": python_workers.MODULE,
        # Else no batch is planned until four executors of five are there, or half a minute is over; planning the first one takes seconds, too.
        "spark.scheduler.minRegisteredResourcesRatio": "0",
        # Spark's 200 tasks a shuffle are meant for gigabytes; a task costs 40 ms of CPU.
        "spark.sql.shuffle.partitions": "4",
        # Spark on Kubernetes ends the driver's JVM at failure number max(3, 2 x executors) + 1 of executors, counted over the driver's whole life.
        # The operator shows executors that do not come; a task that fails has attempts of its own.
        "spark.executor.maxNumFailures": str(2**31 - 1),
        "spark.driver.defaultJavaOptions": JVM,
        "spark.executor.defaultJavaOptions": JVM,
        "spark.executor.heartbeatInterval": LOCAL_HEARTBEAT,  # on a cluster, `cut_off` says which
        **_stacks(config),
        **({} if slots is None else {"spark.python.factory.idleWorkerMaxPoolSize": str(WORKERS_OF_A_SLOT * slots)}),
    }


def _stacks(config: Config) -> dict[str, str]:
    """Python workers say where they stand, in time before a batch is overdue, and again."""
    limit = MAX_SECONDS if config.batch.max_seconds is None else config.batch.max_seconds
    return {"spark.python.worker.tracebackDumpIntervalSeconds": str(max(1, int(limit / 2)))} if limit else {}


def _protocol() -> dict[str, str]:
    return {
        # Two attempts of a task side by side would wait for each other's lease.
        "spark.speculation": "false",
        # The verdict on a batch asks for each of its jobs, their queries, stages and scans, and for executors that left.
        "spark.ui.retainedJobs": "10000",
        "spark.ui.retainedStages": "10000",
        "spark.sql.ui.retainedExecutions": "1000",
        "spark.ui.dagGraph.retainedRootRDDs": "2147483647",
        "spark.ui.retainedDeadExecutors": "1000",
        # Spark drops events of jobs and tasks that do not fit; Spark's 10,000 are as many tasks in a burst.
        "spark.scheduler.listenerbus.eventqueue.appStatus.capacity": "100000",
        # Scaling down lets running tasks end.
        "spark.decommission.enabled": "true",
        "spark.storage.decommission.enabled": "false",
        "spark.executor.decommission.signal": "TERM",
    }


def is_local(master: str) -> bool:
    """Whether driver and executor are one process, so that none can be cut off from the other."""
    return master == "local" or master.startswith("local[")


def slots_of(master: str, given: Mapping[str, str]) -> int | None:
    """Tasks that one process of Spark runs at a time, as far as settings say; one, if they say nothing. None: as many as the machine has cores."""
    match = re.match(r"local\[(\d+|\*)", master)
    if match and match[1] == "*":
        return None
    cores = match[1] if match else given.get("spark.executor.cores", "1")
    return max(1, int(cores)) if cores.isdecimal() else 1


def cut_off(config: Config) -> dict[str, str]:
    """What makes executors fall silent in time when they are cut off."""
    third = config.lease_millis / 3
    return {
        # An executor that is cut off from the driver exits within a third of the lease.
        "spark.executor.heartbeatInterval": f"{int(third / (HEARTBEAT_FAILURES + 1))}ms",
        "spark.executor.heartbeat.maxFailures": str(HEARTBEAT_FAILURES),
        "spark.network.timeout": f"{config.lease_millis}ms",
        # Spark insists on it not being longer than the timeout (its default is a minute).
        "spark.network.timeoutInterval": f"{int(third)}ms",
    }


def _cluster(pod: PodAddress) -> dict[str, str]:
    host = f"[{pod.ip}]" if ":" in pod.ip else pod.ip
    return {
        # Executors dial the bind address when useDriverPodIP is on: 0.0.0.0 would make every one of them die.
        "spark.driver.bindAddress": host,
        "spark.driver.host": host,
        "spark.kubernetes.executor.useDriverPodIP": "true",
        # Makes executors belong to the driver pod: they are garbage-collected with it.
        "spark.kubernetes.driver.pod.name": pod.name,
        "spark.kubernetes.namespace": pod.namespace,
        "spark.kubernetes.decommission.script": DECOMMISSION_SCRIPT,
        # An executor whose pod vanished is replaced after this, not after Spark's half minute.
        "spark.kubernetes.executor.apiPollingInterval": "5s",
        "spark.kubernetes.executor.missingPodDetectDelta": "5s",
    }
