"""The demo in a minute, without a cluster: Spark runs in local mode.

The programs are those of the cluster: the Job's migrator, and the driver pod's supervisor and driver.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sluice_checkpoints.names import counted
from sluice_lab import places
from sluice_lab.demo import tables
from sluice_lab.errors import LabError
from sluice_lab.machine import processes
from sluice_lab.machine.listening import LOOPBACK
from sluice_lab.machine.processes import Program, Running
from sluice_lab.scenario import environment, observed
from sluice_lab.scenario.account import Account
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.environment import Environment
from sluice_lab.scenario.live_view import LiveView
from sluice_lab.scenario.observed import ConsumerSnapshot
from sluice_lab.scenario.pauses import CommitSampler
from sluice_lab.scenario.producer import LoadGenerator
from sluice_lab.scenario.scenario_run import ScenarioRun, exclusive, take_account
from sluice_lab.steps import console, step

TABLE = "sluice_demo"
LEASE_SECONDS = 5
TIMEOUT_SECONDS = 240.0


def run() -> bool:
    """Run the whole scenario; returns whether the account is right."""
    with exclusive() as home:
        sink = home / "local"
        shutil.rmtree(sink, ignore_errors=True)
        with environment.prepared(LOOPBACK) as env:
            found = _run(env, home, sink)
    console.print(f"delivered records: {sink}; the consumers' logs: {places.work() / 'logs'}", soft_wrap=True)
    return found.right


def _run(env: Environment, home: Path, sink: Path) -> Account:
    _migrate(env)
    scenario = _scenario(env, home, sink)
    scenario.sampler.start()
    with scenario.view:
        _change(scenario, home)
    scenario.sampler.stop()
    _show_table(env)
    found = take_account(env, sink)
    tables.show(found, env.stream.shards(), scenario.events, scenario.sampler.commits)
    return found


def _migrate(env: Environment) -> None:
    with step("python -m sluice_checkpoints migrate") as current:
        options = {"--source": environment.TABLE, "--stream": environment.STREAM, "--target": TABLE, "--quiet-seconds": "1"}
        aws = {"--kinesis-endpoint": env.aws.kinesis_endpoint, "--dynamodb-endpoint": env.aws.dynamodb_endpoint}
        named = [word for pair in (options | aws | {"--region": environment.REGION}).items() for word in pair]
        result = json.loads(processes.run(sys.executable, "-m", "sluice_checkpoints", "migrate", *named, "--json", env=_process_environment()))
        current.note(f"{result['state']}, {counted(result['shards'], 'shard')}")


def _scenario(env: Environment, home: Path, sink: Path) -> ScenarioRun:
    (home / "consumer.json").write_text(json.dumps(_config(env, sink), indent=2))
    checkpoints = Checkpoints(env.aws.dynamodb, TABLE)
    view = LiveView(lambda: _snapshot(checkpoints), lambda: len(env.producer.produced))
    return ScenarioRun(env, checkpoints, CommitSampler(checkpoints.committed), LoadGenerator(env.producer), view, lambda: None)


def _snapshot(checkpoints: Checkpoints) -> ConsumerSnapshot:
    return observed.of_table(checkpoints.shown())


def _change(scenario: ScenarioRun, home: Path) -> None:
    """Three epochs of a consumer: the first is killed, the second drains after SIGTERM, the third ends at the tip."""
    first = start("demo-consumer-1", home / "consumer.json")
    scenario.failure = lambda: _ended(first)
    try:
        with scenario.event("start", "first batch committed"):
            scenario.another_batch(TIMEOUT_SECONDS)
        scenario.load.start()
        scenario.split(3)
        scenario.merge(4, 5)
        with scenario.event("kill -9 of everything", "next driver's first batch"):
            processes.kill_tree(first)
            second = start("demo-consumer-2", home / "consumer.json")
            scenario.failure = lambda: _ended(second)
            scenario.another_epoch(TIMEOUT_SECONDS)
    finally:
        processes.kill_tree(first)
    with scenario.event("no more records, SIGTERM", "the next driver ended at the tip"):
        scenario.load.stop()
        os.kill(second.pid, signal.SIGTERM)
        _wait(second, TIMEOUT_SECONDS)
        _wait(start("demo-consumer-3", home / "consumer.json", "--until", "tip"), TIMEOUT_SECONDS)


def start(name: str, config: Path, *options: str) -> Running:
    """Start a consumer with Spark in local mode; `name` is that of its log."""
    command = (sys.executable, "-m", "sluice_consumer", "--config", str(config), "--master", "local[2]")
    return processes.start(places.work(), Program(name, (*command, *options), env=_process_environment(), cwd=config.parent))


def _ended(running: Running) -> str | None:
    if running.alive():
        return None
    return f"{running.name} ended; its log, {running.log}, ends:\n{processes.tail(running.log.read_text(errors='replace'))}"


def _wait(running: Running, seconds: float) -> None:
    """Wait for a consumer that ends without being stopped.

    Raises:
        LabError: it does not end, or ends with an error.
    """
    try:
        if running.process is None or running.process.wait(seconds) == 0:
            return
        raise LabError(_ended(running))
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{running.name} still runs after {seconds:.0f} s, its log is {running.log}") from error
    finally:
        running.stop()


def _show_table(env: Environment) -> None:
    options = ("--table", TABLE, "--region", environment.REGION, "--dynamodb-endpoint", env.aws.dynamodb_endpoint)
    command = (sys.executable, "-m", "sluice_checkpoints", "show", *options)
    console.print("\n$ python -m sluice_checkpoints show", style="bold")
    subprocess.run(command, env={**os.environ, **_process_environment()}, check=True)


def _config(env: Environment, sink: Path) -> Mapping[str, object]:
    """The driver's configuration (docs/interfaces.md)."""
    return {
        "format": 1,
        "name": "demo",
        "stream": {
            "name": environment.STREAM,
            "region": environment.REGION,
            "kinesisEndpoint": env.aws.kinesis_endpoint,
            "dynamodbEndpoint": env.aws.dynamodb_endpoint,
        },
        "checkpoints": {"table": TABLE},
        "migrateFrom": {"table": environment.TABLE},
        "pipeline": {"entrypoint": "sluice_consumer.sinks:parquet", "args": {"path": sink.as_uri()}},
        "batch": {"intervalSeconds": 1},
        "leaseDurationSeconds": LEASE_SECONDS,
    }


def _process_environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(places.REPO / "consumer"), os.environ.get("PYTHONPATH")]))
    return {**environment.CREDENTIALS, "PYTHONPATH": path}
