"""`python -m sluice_lab.demo.incidents`: records a dashboard's answers at a reshard and at a crash. `make generate` draws them.

A real driver reads emulated AWS with Spark in local mode, and Debian's Prometheus scrapes it. Its answers to the dashboard's queries are kept in
`sluice_lab/pictures/recorded`. This takes four minutes and needs no cluster.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_lab import places, program
from sluice_lab.aws import emulators
from sluice_lab.demo import local
from sluice_lab.errors import LabError
from sluice_lab.machine import processes, prometheus
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.machine.processes import Program, Running
from sluice_lab.pictures import story
from sluice_lab.pictures.answers import Prometheus
from sluice_lab.pictures.panels import DrawnPanel, panels
from sluice_lab.scenario import environment
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.environment import Aws
from sluice_lab.scenario.producer import LoadGenerator, Producer
from sluice_lab.scenario.scenario_run import exclusive
from sluice_lab.scenario.topology import Stream, shard_id
from sluice_lab.steps import step

DASHBOARD = places.REPO / "charts" / "sluice" / "files" / "dashboards" / "sluice-consumer.json"
NAMESPACE, NAME, SHARDS = "default", "orders", 3
LEASE_SECONDS, WAIT_SECONDS = 20, 180.0
BEFORE, AFTER = 20.0, 20.0  # seconds of a picture around what happens
SETTLE = 10.0  # seconds until rates are those of this time
WINDOW = "8s"  # $__rate_interval, at a scrape each second
PANELS = {
    "reshard": ("Shards", "Ten shards furthest behind", "Records a second, committed", "Last committed batch"),
    "crash": ("Generation of the lease", "Batches", "Ten shards furthest behind", "Records a second, committed", "Last committed batch"),
}


@dataclass
class Scene:
    """A consumer with a Prometheus. `marks` has what happened, with Unix seconds."""

    stream: Stream
    checkpoints: Checkpoints
    prometheus: Prometheus
    start: Callable[[int], Running]
    marks: list[tuple[float, str]] = field(default_factory=list)

    def mark(self, words: str) -> None:
        """Something happens now."""
        self.marks.append((time.time(), words))

    def until(self, what: str, ready: Callable[[], bool]) -> None:
        """Wait for it.

        Raises:
            LabError: it does not come.
        """
        if not processes.poll(ready, WAIT_SECONDS):
            raise LabError(f"{what}: not within {WAIT_SECONDS:.0f} s; the logs are in {places.work() / 'logs'}")

    def position(self, shard: str) -> str:
        """The kind of a shard's position; empty while it has no row."""
        return str(self.checkpoints.shards().get(shard, {}).get("at", ""))

    def at_the_tip(self) -> bool:
        """Whether no shard is behind, as Prometheus knows it."""
        return self.prometheus.has("max(sluice_shard_millis_behind_latest) == 0")

    def caught(self, driver: Running) -> bool:
        """Whether a batch is open now. Then all processes of the driver are stopped, so it stays open."""
        if not self.open():
            return False
        processes.signal_tree(driver, signal.SIGSTOP)
        if found := self.open():
            return found
        processes.signal_tree(driver, signal.SIGCONT)
        return False

    def open(self) -> bool:
        """Whether a batch is bound that is not committed."""
        rows = CheckpointStore(DynamoTable(NAME, self.checkpoints.dynamodb)).shards().values()
        return max(row.batch for row in rows) > self.committed()[1]

    def committed(self) -> tuple[int, int]:
        """Generation and last committed batch; zeros while there is no table."""
        try:
            return self.checkpoints.committed() or (0, 0)
        except self.checkpoints.dynamodb.exceptions.ResourceNotFoundException:
            return 0, 0


def record() -> None:
    """Record both incidents, one after the other, of one consumer."""
    with _scene() as scene:
        first = scene.start(1)
        scene.until("batches", lambda: scene.committed()[1] > 2)  # Spark is warm then
        scene.until("the tip", scene.at_the_tip)
        time.sleep(BEFORE + SETTLE)
        with step("a reshard"):
            _reshard(scene)
            _keep(scene, "reshard", "A split: shard 1 ends, its children 3 and 4 follow", AFTER)
        with step("a crash"):
            _crash(scene, first)
            _keep(scene, "crash", f"kill -9 of driver and supervisor; leaseDurationSeconds: {LEASE_SECONDS}", AFTER)


def _reshard(scene: Scene) -> None:
    scene.mark("split of shard 1")
    children = scene.stream.split(1)
    scene.until("the end of shard 1", lambda: scene.position(shard_id(1)) == "END")
    scene.mark("shard 1 read to its end")
    scene.until("both children", lambda: all(scene.position(child) == "AFTER" for child in children))
    scene.mark("children read")


def _crash(scene: Scene, first: Running) -> None:
    scene.marks.clear()
    generation = scene.committed()[0]
    scene.until("an open batch", lambda: scene.caught(first))
    scene.mark("kill -9 within a batch, and the next driver starts")
    processes.kill_tree(first)
    scene.start(2)
    scene.until("the lease", lambda: scene.committed()[0] > generation)
    scene.mark("the lease has expired, and is taken")
    before = scene.committed()[1]
    scene.until("the open batch", lambda: scene.committed()[1] > before)
    scene.mark("the open batch was replayed")
    scene.until("batches of its own", lambda: scene.committed()[1] > before + 2)
    scene.until("the tip", scene.at_the_tip)


def _keep(scene: Scene, name: str, title: str, after: float) -> None:
    """Wait for the end of the picture, ask Prometheus, and write the file."""
    time.sleep(after)
    begin, end = round(scene.marks[0][0] - BEFORE), round(time.time())
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    chosen = {"__rate_interval": WINDOW, "namespace": NAMESPACE, "name": NAME}
    found = {panel.title: panel for panel in panels(board)}
    answers = {title: _answer(scene.prometheus, found[title], chosen, (begin, end)) for title in PANELS[name]}
    marks = [[round(at - begin, 1), words] for at, words in scene.marks if words]
    kept = {"title": title, "seconds": end - begin, "marks": marks, "answers": answers}
    (story.RECORDED / f"{name}.json").write_text(json.dumps(kept, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")


def _answer(asked: Prometheus, panel: DrawnPanel, chosen: Mapping[str, str], span: tuple[float, float]) -> list[dict[str, Any]]:
    series = asked.history(panel, chosen, *span)
    return [{"name": each.name, "points": [[at - span[0], float(f"{value:.4g}")] for at, value in each.points]} for each in series]


@contextmanager
def _scene() -> Iterator[Scene]:
    """Emulators, a stream with a producer, and a Prometheus that scrapes whichever driver runs."""
    with ExitStack() as stack:
        home = stack.enter_context(exclusive())
        work, port = places.work(), free_port(LOOPBACK)
        dynamodb = stack.enter_context(emulators.dynamodb_local(work, LOOPBACK))
        kinesis = stack.enter_context(emulators.kinesis_local(work, LOOPBACK))
        aws = environment.aws(kinesis, dynamodb)
        stream = Stream(aws.kinesis, NAME)
        stream.create(SHARDS)
        load = LoadGenerator(Producer(aws.kinesis, NAME))
        (home / "incidents.json").write_text(json.dumps(_config(aws, home / "incidents", port)), encoding="utf-8")
        asked = stack.enter_context(_scraping(home, port))
        drivers = stack.enter_context(_drivers(home))
        load.start()
        stack.callback(load.stop)
        yield Scene(stream, Checkpoints(aws.dynamodb, NAME), asked, drivers)


@contextmanager
def _drivers(home: Path) -> Iterator[Callable[[int], Running]]:
    """Starts a driver with its number. All of them are killed at the end."""
    started: list[Running] = []
    shutil.rmtree(home / "incidents", ignore_errors=True)

    def start(number: int) -> Running:
        started.append(local.start(f"incident-{number}", home / "incidents.json"))
        return started[-1]

    try:
        yield start
    finally:
        for each in started:
            processes.kill_tree(each)


@contextmanager
def _scraping(home: Path, port: int) -> Iterator[Prometheus]:
    """A Prometheus of this machine; its targets have the labels that the chart's PodMonitor gives."""
    data, listen = home / "prometheus", f"{LOOPBACK}:{free_port(LOOPBACK)}"
    shutil.rmtree(data, ignore_errors=True)
    target = {"targets": [f"{LOOPBACK}:{port}"], "labels": {"namespace": NAMESPACE, "sluice_dev_consumer": NAME}}
    config = {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": [{"job_name": "drivers", "static_configs": [target]}]}
    (home / "prometheus.json").write_text(json.dumps(config), encoding="utf-8")
    options = (f"--config.file={home / 'prometheus.json'}", f"--storage.tsdb.path={data}", f"--web.listen-address={listen}")
    running = processes.start(places.work(), Program("incident-prometheus", (prometheus.program("prometheus"), *options)))
    try:
        yield Prometheus(lambda path: _get(f"http://{listen}/api/v1/{path}"))
    finally:
        running.stop()


def _get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as reply:  # noqa: S310 - on this machine
        return str(reply.read().decode())


def _config(aws: Aws, sink: Path, port: int) -> Mapping[str, object]:
    """The driver's configuration (docs/interfaces.md). After a pause it needs some batches to catch up."""
    return {
        "format": 1,
        "name": NAME,
        "stream": {"name": NAME, "region": environment.REGION, "kinesisEndpoint": aws.kinesis_endpoint, "dynamodbEndpoint": aws.dynamodb_endpoint},
        "checkpoints": {"table": NAME},
        "pipeline": {"entrypoint": "sluice_consumer.sinks:parquet", "args": {"path": sink.as_uri()}},
        "batch": {"intervalSeconds": 2, "maxRecordsPerShard": 250},
        "leaseDurationSeconds": LEASE_SECONDS,
        "metrics": {"port": port},
    }


if __name__ == "__main__":
    program.run(record)
