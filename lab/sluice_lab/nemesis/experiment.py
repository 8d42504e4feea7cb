"""One experiment: a consumer of eight shards, measurements of single changes, a schedule of faults, and the checker."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from sluice_checkpoints.letters import folder
from sluice_checkpoints.letters.folder import DiskFolder
from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.aws.proxy import Upstream, proxy
from sluice_lab.errors import LabError
from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.nemesis import checker, history, injector, lake_sinks, manifest, measuring, members, passes, pooled, timeline
from sluice_lab.nemesis.checker import CheckResult, Observations, PoisonAccount
from sluice_lab.nemesis.history import History
from sluice_lab.nemesis.injector import Injector
from sluice_lab.nemesis.lake_sinks import LakeSink
from sluice_lab.nemesis.pool_hands import PoolHands
from sluice_lab.nemesis.resets import Resets
from sluice_lab.nemesis.runner import Runner
from sluice_lab.nemesis.sampler import TableSampler
from sluice_lab.nemesis.schedule import NemesisRun, ProxiedService, SinkKind
from sluice_lab.nemesis.timeline import Injection, Timeline
from sluice_lab.nemesis.under_test import Experiment, Neighbour
from sluice_lab.scenario import account, delivered, environment, installing
from sluice_lab.scenario.account import AccountInput, RecordPosition
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.environment import Aws
from sluice_lab.scenario.live_view import LiveView
from sluice_lab.scenario.producer import LoadGenerator, Producer
from sluice_lab.scenario.resource_reader import ResourceReader
from sluice_lab.scenario.topology import Stream
from sluice_lab.steps import console, step

SHARDS = 8
NAMESPACE = installing.NAMESPACE
SINK = "/var/local/sluice-nemesis"  # on the node
START_TIMEOUT, POISON_TIMEOUT, RESET_TIMEOUT = 600.0, 900.0, 300.0


def run(found: KindCluster, trial: NemesisRun, home: Path) -> CheckResult:
    """Run one experiment on a cluster with the operator and an empty namespace. `home` then holds the sinks, the samples and the timeline."""
    shutil.rmtree(home, ignore_errors=True)
    places.made(home)
    with _set_up(found, trial) as experiment:
        try:
            _execute(experiment, trial)
        except LabError:
            installing.diagnose(found, home / "diagnosis")
            raise
        finally:
            _tear_down(experiment)
            _fetch(experiment, home)
        return _check(experiment, f"nemesis, {trial.sink}, {trial.seconds:.0f} s, seed {trial.seed}", home, resets=trial.resets)


@contextmanager
def _set_up(found: KindCluster, trial: NemesisRun) -> Iterator[Experiment]:
    """Start emulators behind proxies, make a stream and an empty sink, and apply the consumer, with its pool if it has one."""
    work, listen = places.work(), clusters.host_address(found).listen
    with ExitStack() as stack:
        with step("emulated AWS, behind proxies"):
            dynamodb = stack.enter_context(emulators.dynamodb_local(work, listen))
            kinesis = stack.enter_context(emulators.kinesis_local(work, listen))
            proxies = {
                ProxiedService.DYNAMODB: stack.enter_context(proxy(Upstream(dynamodb), listen, trial.seed)),
                ProxiedService.KINESIS: stack.enter_context(proxy(Upstream(kinesis), listen, trial.seed)),
            }
        lake = None
        if trial.sink is not SinkKind.FILES:
            with step(f"S3 for {trial.sink}, behind proxies"):
                lake = stack.enter_context(lake_sinks.running(trial.sink, work, listen, trial.seed))
        aws = environment.aws(kinesis, dynamodb)
        stream, producer = Stream(aws.kinesis, manifest.STREAM), Producer(aws.kinesis, manifest.STREAM)
        stream.create(SHARDS)
        reader = ResourceReader(found.kubeconfig, NAMESPACE, manifest.NAME, manifest.NAME if trial.pool else "")
        yield _start(found, aws, Injector(found, manifest.NAME, stream, proxies, reader.read, SINK), producer, lake, trial)


def _start(found: KindCluster, aws: Aws, injecting: Injector, producer: Producer, lake: LakeSink | None, trial: NemesisRun) -> Experiment:
    if lake:
        injecting.proxies, injecting.maintain = {**injecting.proxies, **lake.proxies}, lake.maintain
    table = _table(manifest.NAME)
    injecting.on_node(f"rm -rf {SINK} && install --directory --mode=0777 {SINK} {SINK}/seen {SINK}/stored {SINK}/{manifest.LETTERS}")
    injecting.pace(injector.PACE)
    neighbours = {name: _neighbour(injecting, aws, producer, name) for name in (pooled.NEIGHBOURS if trial.pool else ())}
    view = LiveView(injecting.observe, lambda: len(producer.produced))
    injecting.observe = view.refresh  # after a failed read the last snapshot stays
    sampler = TableSampler(aws.dynamodb, table, lambda: len(producer.produced))
    runner = Runner(injecting.inject, time.time, lambda moment: time.sleep(max(0.0, moment - time.time())), _print)
    experiment = Experiment(
        injecting, sampler, view, injecting.stream, producer, LoadGenerator(producer), runner, Checkpoints(aws.dynamodb, table), lake, neighbours
    )
    injecting.resets = Resets(experiment.kubectl, manifest.NAME, experiment.checkpoints)
    path = places.made(places.work() / "nemesis") / "manifest.json"
    kinesis, dynamodb = (injecting.proxies[name].endpoint for name in (ProxiedService.KINESIS, ProxiedService.DYNAMODB))
    addresses = manifest.Addresses(kinesis, dynamodb, SINK, lake.args if lake else {}, lake.spark_conf if lake else {}, trial.poison)
    if trial.pool:
        injecting.pool = PoolHands(experiment.kubectl, injecting.on_node, SINK, pooled.leave(addresses))
    consumers = pooled.documents(addresses) if trial.pool else [manifest.consumer(addresses)]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest.pipeline(), *consumers]}))
    found.kubectl(f"--namespace={NAMESPACE}", "apply", f"--filename={path}")
    return experiment


def _table(name: str) -> str:
    """The operator's default."""
    return f"sluice_{NAMESPACE}_{name}"


def _neighbour(injecting: Injector, aws: Aws, producer: Producer, name: str) -> Neighbour:
    """Make the folder of its sinks, and prepare what records it."""
    folder_of = pooled.folder(SINK, name)
    injecting.on_node(f"install --directory --mode=0777 {folder_of} {folder_of}/seen {folder_of}/stored && echo {injector.PACE} >{folder_of}/pace")
    sampler = TableSampler(aws.dynamodb, _table(name), lambda: len(producer.produced))
    return Neighbour(sampler, Checkpoints(aws.dynamodb, _table(name)))


def _letters_on_node(experiment: Experiment) -> list[str]:
    return experiment.injector.on_node(f"find {SINK}/{manifest.LETTERS} -name '*.json'").split()


def _print(injection: Injection) -> None:
    console.print(f"  {injection.title} {injection.victim}", style="red", soft_wrap=True, markup=False)


def _execute(experiment: Experiment, trial: NemesisRun) -> None:
    """Run from the first batch to the consumer's deletion."""
    for sampler in experiment.samplers:
        sampler.start()
    experiment.load.start()
    with experiment.view:
        with experiment.view.step("the first batch"):
            experiment.until("a batch of each", lambda: all(sampler.batch > 0 for sampler in experiment.samplers), START_TIMEOUT)
        measuring.measure(experiment)
        if trial.standby:
            measuring.stand_by(experiment)
        with experiment.view.step(f"{trial.seconds:.0f} s of nemesis, seed {trial.seed}"):
            experiment.runner.run(trial.faults())
        if trial.poison:
            with experiment.view.step("every poison record in the dead letters"):
                experiment.until("a letter for each", lambda: len(_letters_on_node(experiment)) >= len(experiment.injector.poison), POISON_TIMEOUT)
        if trial.resets:
            _await_resets(experiment)
        _drain(experiment)


def _await_resets(experiment: Experiment) -> None:
    """Wait until none is under way, and keep what the table says of those that were carried out."""
    resets = experiment.injector.resets
    assert resets is not None  # noqa: S101 - made with the experiment
    with experiment.view.step("the last reset"):
        experiment.until("the last reset carried out or refused", resets.over, RESET_TIMEOUT)
    experiment.resets = resets.carried_out()
    for id_, why in resets.refused.items():
        console.print(f"{id_} was refused: {why}", soft_wrap=True)


def _drain(experiment: Experiment) -> None:
    """After the last fault and the last record, wait until all is consumed, and delete the consumer."""
    with experiment.view.step("all records behind a checkpoint"):
        experiment.load.stop()
        last = experiment.producer.last_positions()
        tables = {manifest.NAME: experiment.checkpoints, **{name: one.checkpoints for name, one in experiment.neighbours.items()}}
        for name, table in tables.items():
            experiment.until(f"every record behind a checkpoint of {name}", partial(_all_behind, last, table))
    with experiment.view.step("the consumer deleted"):
        _delete(experiment)


def _all_behind(last: Mapping[str, RecordPosition], table: Checkpoints) -> bool:
    return not account.behind(last, table.shards())


def _delete(experiment: Experiment) -> None:
    """Delete the consumer, its neighbours, and then the pool, as far as they are there."""
    experiment.kubectl("delete", "kc", manifest.NAME, *experiment.neighbours, "--ignore-not-found", "--timeout=120s")
    if experiment.neighbours:
        experiment.kubectl("delete", "kcp", manifest.NAME, "--ignore-not-found", "--timeout=120s")


def _tear_down(experiment: Experiment) -> None:
    """Stop everything, even after a failure, before the emulators end."""
    for sampler in experiment.samplers:
        sampler.stop()
    with contextlib.suppress(LabError):
        experiment.load.stop()
    _delete(experiment)
    experiment.kubectl("delete", f"configmap/{manifest.NAME}", "--ignore-not-found")


def _fetch(experiment: Experiment, home: Path) -> None:
    """Copy the sinks from the node, and keep samples, injections and windows for diagnosis."""
    processes.run("docker", "cp", f"{experiment.injector.cluster.node}:{SINK}", str(home / "sink"))
    kept = {
        "samples": [asdict(sample) for sample in experiment.sampler.samples],
        "neighbours": {name: [asdict(sample) for sample in one.sampler.samples] for name, one in experiment.neighbours.items()},
        "injections": [asdict(injection) for injection in experiment.runner.injections],
        "resets": [asdict(reset) for reset in experiment.resets],
        "windows": [asdict(window) for window in experiment.windows.values()],
    }
    (home / "observed.json").write_text(json.dumps(kept))


def _check(experiment: Experiment, title: str, home: Path, *, resets: bool) -> CheckResult:
    """Check the sinks, the replies to the producer, and the samples of the table."""
    stored = experiment.lake.read() if experiment.lake else delivered.read(home / "sink" / "stored")
    samples = experiment.sampler.samples
    found = _seen(home / "sink")
    parents = experiment.stream.parents()
    deliveries = AccountInput(experiment.producer.produced, {}, stored, parents)
    by_pass = passes.compare(experiment.producer.produced, stored, parents, experiment.resets)
    drawn = Timeline(title, experiment.runner.injections, samples, found.reads, by_pass.reached)
    (home / "timeline.svg").write_text(timeline.draw(drawn))
    letters = [letter.data.decode() for _, letter in folder.letters(DiskFolder(home / "sink" / manifest.LETTERS))]
    poison = PoisonAccount(tuple(experiment.injector.poison), tuple(letters))
    moved = by_pass if resets else None
    lease = pooled.LEASE_SECONDS if experiment.neighbours else manifest.LEASE_SECONDS
    seats = members.by_generation if experiment.neighbours else members.unchanged
    mine = Observations(account.compare(deliveries), *seats(found, samples), experiment.windows, lease, poison, moved)
    beside = {name: _beside(experiment, name, home, parents) for name in experiment.neighbours}
    return checker.check(mine, beside)


def _seen(folder_of: Path) -> History:
    """What tasks of a member have written of their reads."""
    return history.parse(line for file in (folder_of / "seen").iterdir() for line in file.read_text().splitlines())


def _beside(experiment: Experiment, name: str, home: Path, parents: Mapping[str, Iterable[str]]) -> Observations:
    """What is checked of a neighbour: it reads the same stream."""
    at = home / "sink" / name
    deliveries = AccountInput(experiment.producer.produced, {}, delivered.read(at / "stored"), parents)
    found = _seen(at)
    seated = members.by_generation(found, experiment.neighbours[name].sampler.samples)
    return Observations(account.compare(deliveries), *seated, experiment.windows, pooled.LEASE_SECONDS)
