"""The story in a minute, on this machine alone: Spark in local mode, no cluster.

The programs are those that run in the cluster: the migrator of the Job, the supervisor and driver of the driver's pod.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sluice_lab import places
from sluice_lab.demo import tables
from sluice_lab.errors import LabError
from sluice_lab.machine import processes
from sluice_lab.machine.listening import LOOPBACK
from sluice_lab.machine.processes import Program, Running
from sluice_lab.scenario import observed, setting
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.ledger import Account
from sluice_lab.scenario.observed import Sight
from sluice_lab.scenario.pauses import Sampler
from sluice_lab.scenario.producer import Stroll
from sluice_lab.scenario.setting import World
from sluice_lab.scenario.stage import Stage, alone, reckon
from sluice_lab.scenario.view import LiveView
from sluice_lab.steps import console, step

TABLE = "sluice_demo"
LEASE_SECONDS = 5
PATIENCE_SECONDS = 240.0


def tell() -> bool:
    """The whole story; gives whether it ended well."""
    with alone() as home:
        sink = home / "local"
        shutil.rmtree(sink, ignore_errors=True)
        with setting.world(LOOPBACK) as world:
            found = _tell(world, home, sink)
    console.print(f"what was delivered lies in {sink}, the consumers' logs in {places.work() / 'logs'}", soft_wrap=True)
    return found.right


def _tell(world: World, home: Path, sink: Path) -> Account:
    _migrate(world)
    stage = _stage(world, home, sink)
    stage.sampler.start()
    with stage.view:
        _live(stage, home)
    stage.sampler.stop()
    _show_table(world)
    found = reckon(world, sink)
    tables.show(found, world.stream.shards(), stage.events, stage.sampler.commits)
    return found


def _migrate(world: World) -> None:
    with step("python -m sluice_checkpoints migrate") as current:
        options = {"--source": setting.TABLE, "--stream": setting.STREAM, "--target": TABLE, "--quiet-seconds": "1"}
        aws = {"--kinesis-endpoint": world.aws.kinesis_endpoint, "--dynamodb-endpoint": world.aws.dynamodb_endpoint}
        named = [word for pair in (options | aws | {"--region": setting.REGION}).items() for word in pair]
        result = json.loads(processes.run(sys.executable, "-m", "sluice_checkpoints", "migrate", *named, "--json", env=_environment()))
        current.note(f"{result['state']}, {result['shards']} shards")


def _stage(world: World, home: Path, sink: Path) -> Stage:
    (home / "consumer.json").write_text(json.dumps(_config(world, sink), indent=2))
    checkpoints = Checkpoints(world.aws.dynamodb, TABLE)
    view = LiveView(lambda: _sight(checkpoints), lambda: len(world.producer.produced))
    return Stage(world, checkpoints, Sampler(checkpoints.committed), Stroll(world.producer), view, lambda: None)


def _sight(checkpoints: Checkpoints) -> Sight:
    return observed.of_table(checkpoints.shown())


def _live(stage: Stage, home: Path) -> None:
    """Three epochs of a consumer: the first is killed, the second drains when it is told to, the third ends by itself at the tip."""
    first = _start("demo-consumer-1", home)
    stage.trouble = lambda: _ended(first)
    try:
        with stage.event("start", "first batch committed"):
            stage.another_batch(PATIENCE_SECONDS)
        stage.stroll.start()
        stage.split(3)
        stage.merge(4, 5)
        with stage.event("kill -9 of everything", "next driver's first batch"):
            _kill(first)
            second = _start("demo-consumer-2", home)
            stage.trouble = lambda: _ended(second)
            stage.another_epoch(PATIENCE_SECONDS)
    finally:
        _kill(first)
    with stage.event("no more records, SIGTERM", "the next driver ended at the tip"):
        stage.stroll.stop()
        os.kill(second.pid, signal.SIGTERM)
        _wait(second, PATIENCE_SECONDS)
        _wait(_start("demo-consumer-3", home, "--until-tip"), PATIENCE_SECONDS)


def _start(name: str, home: Path, *options: str) -> Running:
    command = (sys.executable, "-m", "sluice_consumer", "--config", str(home / "consumer.json"), "--master", "local[2]")
    return processes.start(places.work(), Program(name, (*command, *options), env=_environment(), cwd=home))


def _ended(running: Running) -> str | None:
    if running.alive():
        return None
    return f"{running.name} ended; its log, {running.log}, ends:\n{processes.tail(running.log.read_text(errors='replace'))}"


def _wait(running: Running, seconds: float) -> None:
    """Wait for a consumer that ends by itself.

    Raises:
        LabError: it does not, or not well.
    """
    try:
        if running.process is None or running.process.wait(seconds) == 0:
            return
        raise LabError(_ended(running))
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{running.name} still runs after {seconds:.0f} s, its log is {running.log}") from error
    finally:
        running.stop()


def _kill(running: Running) -> None:
    """As a power cut: the supervisor and everything below it, at once, with no chance to say a word."""
    if not running.alive():
        return
    for pid in [running.pid, *_below(running.pid)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it died with its parent
    running.stop()


def _below(pid: int) -> list[int]:
    """The process ids of all descendants."""
    pairs = [line.split() for line in processes.run("ps", "-A", "-o", "pid=,ppid=").splitlines()]
    children = [int(child) for child, parent in pairs if int(parent) == pid]
    return [*children, *(below for child in children for below in _below(child))]


def _show_table(world: World) -> None:
    options = ("--table", TABLE, "--region", setting.REGION, "--dynamodb-endpoint", world.aws.dynamodb_endpoint)
    command = (sys.executable, "-m", "sluice_checkpoints", "show", *options)
    console.print("\n$ python -m sluice_checkpoints show", style="bold")
    subprocess.run(command, env={**os.environ, **_environment()}, check=True)


def _config(world: World, sink: Path) -> Mapping[str, object]:
    """The driver's configuration, docs/interfaces.md."""
    return {
        "format": 1,
        "name": "demo",
        "stream": {
            "name": setting.STREAM,
            "region": setting.REGION,
            "kinesisEndpoint": world.aws.kinesis_endpoint,
            "dynamodbEndpoint": world.aws.dynamodb_endpoint,
        },
        "checkpoints": {"table": TABLE},
        "migrateFrom": {"table": setting.TABLE},
        "pipeline": {"entrypoint": "sluice_consumer.pipelines:parquet", "args": {"path": sink.as_uri()}},
        "batch": {"intervalSeconds": 1},
        "leaseDurationSeconds": LEASE_SECONDS,
    }


def _environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(places.REPO / "consumer"), os.environ.get("PYTHONPATH")]))
    return {**setting.CREDENTIALS, "PYTHONPATH": path}
