"""A driver's start on a real cluster, second by second: `python bench/cluster_start.py [--rounds 3]`.

Kinesis and DynamoDB are emulated on this machine, and the node is a container of it: so every process of every pod is seen in /proc, with its start
and its CPU. A round restarts the consumer (a restart that the user asks for), then kills its driver. It prints figures and asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from process_tree import TICKS

from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.demo import clean
from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.nemesis.injector import SIGNAL
from sluice_lab.scenario import environment, installing
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.pauses import CommitSampler
from sluice_lab.scenario.producer import LoadGenerator, Producer
from sluice_lab.scenario.topology import Stream
from sluice_lab.steps import console

NAME, SHARDS, LEASE = "start", 4, 10
RAN_SECONDS = 10  # a driver that has run for longer is followed without a pause, as one is by default after ten minutes
CODE = 'def process(batch, info):\n    batch.write.format("noop").mode("append").save()\n'
PROGRAMS = (  # by a word of their command line, the first that fits
    ("sluice_consumer.checks.importing", "the trial import of the pipeline"),
    ("sluice_consumer.process.driver", "driver"),
    ("org.apache.spark.launcher.Main", "Spark's launcher, a JVM"),
    ("KubernetesExecutorBackend", "executor's JVM"),
    ("org.apache.spark.deploy.SparkSubmit", "driver's JVM"),
    ("lookup_data_sources", "workers that list data sources"),
    ("create_data_source", "workers that make the source"),
    ("plan_data_source_read", "workers that plan"),
    ("sluice_consumer.spark.python_workers", "workers that read"),
    ("-m sluice_consumer", "supervisor"),
)
FIELDS = (
    "{.object.metadata.name} {.object.status.phase} {.object.metadata.deletionTimestamp} {.object.spec.nodeName}"
    " {.object.status.containerStatuses[0].state}"
)
LOOK_SECONDS = 0.1
IMAGE_USER = 185  # of pods; other programs of this machine have another


@dataclass
class Watched:
    """What is seen of all processes and pods.

    Attributes:
        programs: by process: kind, wall-clock start, CPU seconds at the last look, when it was last there.
        pods: wall-clock times with what a watch showed then.
    """

    programs: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    pods: list[tuple[float, str]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        while not self.over.wait(LOOK_SECONDS):
            now = time.time()
            for stat in Path("/proc").glob("[0-9]*/stat"):
                self._look(stat, boot, now)

    def _look(self, stat: Path, boot: float, now: float) -> None:
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            key = int(stat.parent.name), int(fields[19])
            if stat.stat().st_uid != IMAGE_USER:
                return
            if key not in self.programs or not self.programs[key][0]:
                command = (stat.parent / "cmdline").read_text().replace("\0", " ")
                kind = next((name for word, name in PROGRAMS if word in command), "")
                self.programs[key] = [kind, boot + key[1] / TICKS, 0.0, now]
            self.programs[key][2:] = [sum(map(int, fields[11:13])) / TICKS, now]
        except OSError:
            return

    def follow(self, cluster: KindCluster) -> subprocess.Popen[str]:
        command = ["kubectl", f"--kubeconfig={cluster.kubeconfig}", f"--namespace={installing.NAMESPACE}", "get", "pods", "--watch"]
        command += ["--output-watch-events", "--output=jsonpath={.type} " + FIELDS + '{"\\n"}']
        path = f"{places.work() / 'bin'}{os.pathsep}{os.environ['PATH']}"
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PATH": path})
        threading.Thread(target=self._hear, args=(process,), daemon=True).start()
        return process

    def _hear(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.pods.append((time.time(), line.strip()))


@dataclass
class Bench:
    cluster: KindCluster
    sampler: CommitSampler
    watched: Watched

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(f"--namespace={installing.NAMESPACE}", *arguments)

    def driver(self) -> str:
        return self.kubectl("get", "kinesisconsumer", NAME, "--output=jsonpath={.status.driver.pod}")

    def measured(self, what: str, cause: Callable[[], object]) -> dict[str, Any]:
        self.calm(2 * RAN_SECONDS)  # batches of a second
        before, began, generation = self.sampler.commits[-1], time.time(), self.sampler.generation
        shift = began - time.monotonic()
        cause()
        assert processes.poll(lambda: self.sampler.generation > generation, 300)
        first = next(commit for commit in self.sampler.commits if commit.generation > generation)
        last = [commit for commit in self.sampler.commits if commit.generation == generation][-1]
        self.calm(3)
        lines = self.kubectl("logs", "--timestamps", self.driver()).splitlines()
        pods = [(at - began, line) for at, line in self.watched.pods if began - 1 < at < first.at + shift + 1]
        found = {
            "what": what,
            "from the cause": first.at + shift - began,
            "between two batches": first.at - max(last.at, before.at),
            "last batch": last.at + shift - began,
            "programs": self.programs(began, first.at + shift),
            "log": [(stamp(line) - began, line.partition(" ")[2]) for line in lines if stamp(line) < first.at + shift + 1],
            "pods": pods,
        }
        show(found)
        return found

    def programs(self, began: float, ended: float) -> list[tuple[float, str, float]]:
        """Those that began meanwhile: when, what, CPU seconds until now."""
        rows = [(start - began, kind, cpu) for kind, start, cpu, _ in self.watched.programs.values() if kind and began < start < ended]
        return sorted(rows)

    def calm(self, batches: int) -> None:
        goal = self.sampler.batch + batches
        assert processes.poll(lambda: self.sampler.batch >= goal, 300)

    def restart(self) -> None:
        """What `kubectl sluice restart` does."""
        self.kubectl("annotate", "--overwrite", f"kinesisconsumer/{NAME}", f"sluice.dev/restart={time.time():.0f}")

    def kill(self) -> None:
        """SIGKILL to all processes of the driver's container at once."""
        processes.run("docker", "exec", self.cluster.node, "sh", "-c", SIGNAL, "signal", f"SLUICE_POD_NAME={self.driver()}", "KILL")


def stamp(line: str) -> float:
    """The time of a line of `kubectl logs --timestamps`, in seconds since the epoch."""
    text = line.partition(" ")[0].rstrip("Z")
    whole, _, fraction = text.partition(".")
    return time.mktime(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(f"0.{fraction or 0}")


def show(found: dict[str, Any]) -> None:
    console.print(f"\n== {found['what']}: {found['from the cause']:.1f} s to the next batch; {found['between two batches']:.1f} s without a batch")
    rows = [(at, f"begins: {kind} ({cpu:.1f} CPU-s)") for at, kind, cpu in found["programs"]]
    rows += [(at, f"driver: {line[:140]}") for at, line in found["log"]]
    rows += [(at, f"pod {line[:170]}") for at, line in found["pods"]]
    for at, text in sorted(rows):
        console.print(f"{at:7.2f} {text}", soft_wrap=True, markup=False)


def manifest(aws: environment.Aws, conf: dict[str, str]) -> list[dict[str, Any]]:
    credentials = [{"name": key, "value": value} for key, value in environment.CREDENTIALS.items()]
    endpoints = {"kinesisEndpoint": aws.kinesis_endpoint, "dynamodbEndpoint": aws.dynamodb_endpoint}
    resources = {"driver": {"cpu": "100m", "memory": "512Mi"}, "executor": {"cpu": "100m", "memory": "1Gi"}}
    parts = {
        role: {"resources": {"requests": asked}, "podTemplate": {"spec": {"containers": [{"name": role, "env": credentials}]}}}
        for role, asked in resources.items()
    }
    spec = {
        "stream": {"name": environment.STREAM, "region": environment.REGION, **endpoints},
        "start": {"position": "LATEST"},
        "replicas": 1,
        "pipeline": {"entrypoint": "measured_code:process", "source": {"configMap": NAME}},
        "batch": {"intervalSeconds": 1},
        "leaseDurationSeconds": LEASE,
        "restart": {"resetAfterSeconds": RAN_SECONDS},
        "sparkConf": conf,
        **parts,
    }
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"measured_code.py": CODE}}
    return [code, {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumer", "metadata": {"name": NAME}, "spec": spec}]


@contextmanager
def consumer(cluster: KindCluster, conf: dict[str, str]) -> Iterator[Bench]:
    work, listen = places.work(), clusters.host_address(cluster).listen
    with emulators.dynamodb_local(work, listen) as dynamodb, emulators.kinesis_local(work, listen) as kinesis:
        aws = environment.aws(kinesis, dynamodb)
        Stream(aws.kinesis, environment.STREAM).create(SHARDS)
        sampler = CommitSampler(Checkpoints(aws.dynamodb, f"sluice_{installing.NAMESPACE}_{NAME}").committed)
        load, watched = LoadGenerator(Producer(aws.kinesis, environment.STREAM)), Watched()
        path = places.made(work / "tests") / "start.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifest(aws, conf)}))
        sampler.start()
        load.start()
        threading.Thread(target=watched.look, daemon=True).start()
        following = watched.follow(cluster)
        bench = Bench(cluster, sampler, watched)
        try:
            bench.kubectl("apply", f"--filename={path}")
            yield bench
        finally:
            watched.over.set()
            following.terminate()
            bench.kubectl("delete", f"kc/{NAME}", f"configmap/{NAME}", "--ignore-not-found", "--timeout=120s")
            sampler.stop()
            load.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="a file for everything that was seen")
    parser.add_argument("--spark-conf", type=json.loads, default={}, metavar="JSON")
    parser.add_argument("--stay", action="store_true", help="leave the cluster as it is")
    asked = parser.parse_args()
    name = clusters.default_name()
    found = defaultdict[str, list[dict[str, Any]]](list)
    try:
        with consumer(installing.install(name), asked.spark_conf) as bench:
            for _ in range(asked.rounds):
                for what, cause in (("clean restart", bench.restart), ("SIGKILL of the driver", bench.kill)):
                    found[what].append(bench.measured(what, cause))
    finally:
        if not asked.stay:
            clean.clean(name, with_images=False)
        if asked.keep:
            asked.keep.write_text(json.dumps(found))
    for what, runs in found.items():
        seconds = [run["from the cause"] for run in runs]
        console.print(f"{what}: {median(seconds):.1f} s ({min(seconds):.1f}-{max(seconds):.1f}) to the next batch")


if __name__ == "__main__":
    main()
