"""One experiment: a consumer of eight shards, measurements of single changes, a schedule of faults, and the checker."""

import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
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
from sluice_lab.nemesis import checker, history, injector, lake_sinks, manifest, measuring, timeline
from sluice_lab.nemesis.checker import CheckResult, Observations, PoisonAccount
from sluice_lab.nemesis.injector import Injector
from sluice_lab.nemesis.lake_sinks import LakeSink
from sluice_lab.nemesis.runner import Runner
from sluice_lab.nemesis.sampler import TableSampler
from sluice_lab.nemesis.schedule import NemesisRun, ProxiedService, SinkKind
from sluice_lab.nemesis.timeline import Injection, Timeline
from sluice_lab.nemesis.under_test import Experiment
from sluice_lab.scenario import account, delivered, environment, installing
from sluice_lab.scenario.account import AccountInput
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
POISON_TIMEOUT = 900.0


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
        return _check(experiment, f"nemesis, {trial.sink}, {trial.seconds:.0f} s, seed {trial.seed}", home)


@contextmanager
def _set_up(found: KindCluster, trial: NemesisRun) -> Iterator[Experiment]:
    """Start emulators behind proxies, make a stream and an empty sink, and apply the consumer."""
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
        reader = ResourceReader(found.kubeconfig, NAMESPACE, manifest.NAME)
        yield _start(found, aws, Injector(found, manifest.NAME, stream, proxies, reader.read, SINK), producer, lake, poison=trial.poison)


def _start(found: KindCluster, aws: Aws, injecting: Injector, producer: Producer, lake: LakeSink | None, *, poison: bool) -> Experiment:
    if lake:
        injecting.proxies, injecting.maintain = {**injecting.proxies, **lake.proxies}, lake.maintain
    table = f"sluice_{NAMESPACE}_{manifest.NAME}"  # the operator's default
    injecting.on_node(f"rm -rf {SINK} && install --directory --mode=0777 {SINK} {SINK}/seen {SINK}/stored {SINK}/{manifest.LETTERS}")
    injecting.pace(injector.PACE)
    view = LiveView(injecting.observe, lambda: len(producer.produced))
    injecting.observe = view.refresh  # after a failed read the last snapshot stays
    sampler = TableSampler(aws.dynamodb, table, lambda: len(producer.produced))
    runner = Runner(injecting.inject, time.time, lambda moment: time.sleep(max(0.0, moment - time.time())), _print)
    experiment = Experiment(
        injecting, sampler, view, injecting.stream, producer, LoadGenerator(producer), runner, Checkpoints(aws.dynamodb, table), lake
    )
    path = places.made(places.work() / "nemesis") / "manifest.json"
    kinesis, dynamodb = (injecting.proxies[name].endpoint for name in (ProxiedService.KINESIS, ProxiedService.DYNAMODB))
    addresses = manifest.Addresses(kinesis, dynamodb, SINK, lake.args if lake else {}, lake.spark_conf if lake else {}, poison)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest.pipeline(), manifest.consumer(addresses)]}))
    found.kubectl(f"--namespace={NAMESPACE}", "apply", f"--filename={path}")
    return experiment


def _letters_on_node(experiment: Experiment) -> list[str]:
    return experiment.injector.on_node(f"find {SINK}/{manifest.LETTERS} -name '*.json'").split()


def _print(injection: Injection) -> None:
    console.print(f"  {injection.title} {injection.victim}", style="red", soft_wrap=True, markup=False)


def _execute(experiment: Experiment, trial: NemesisRun) -> None:
    """Run from the first batch to the consumer's deletion."""
    experiment.sampler.start()
    experiment.load.start()
    with experiment.view:
        with experiment.view.step("the first batch"):
            experiment.until("a batch", lambda: experiment.sampler.batch > 0)
        measuring.measure(experiment)
        with experiment.view.step(f"{trial.seconds:.0f} s of nemesis, seed {trial.seed}"):
            experiment.runner.run(trial.faults())
        if trial.poison:
            with experiment.view.step("every poison record in the dead letters"):
                experiment.until("a letter for each", lambda: len(_letters_on_node(experiment)) >= len(experiment.injector.poison), POISON_TIMEOUT)
        _drain(experiment)


def _drain(experiment: Experiment) -> None:
    """After the last fault and the last record, wait until all is consumed, and delete the consumer."""
    with experiment.view.step("all records behind a checkpoint"):
        experiment.load.stop()
        last = experiment.producer.last_positions()
        experiment.until("every record behind a checkpoint", lambda: not account.behind(last, experiment.checkpoints.shards()))
    with experiment.view.step("the consumer deleted"):
        experiment.kubectl("delete", f"kc/{manifest.NAME}", "--timeout=120s")


def _tear_down(experiment: Experiment) -> None:
    """Stop everything, even after a failure, before the emulators end."""
    experiment.sampler.stop()
    with contextlib.suppress(LabError):
        experiment.load.stop()
    experiment.kubectl("delete", f"kc/{manifest.NAME}", f"configmap/{manifest.NAME}", "--ignore-not-found", "--timeout=120s")


def _fetch(experiment: Experiment, home: Path) -> None:
    """Copy the sinks from the node, and keep samples, injections and windows for diagnosis."""
    processes.run("docker", "cp", f"{experiment.injector.cluster.node}:{SINK}", str(home / "sink"))
    kept = {
        "samples": [asdict(sample) for sample in experiment.sampler.samples],
        "injections": [asdict(injection) for injection in experiment.runner.injections],
        "windows": [asdict(window) for window in experiment.windows.values()],
    }
    (home / "observed.json").write_text(json.dumps(kept))


def _check(experiment: Experiment, title: str, home: Path) -> CheckResult:
    """Check the sinks, the replies to the producer, and the samples of the table."""
    stored = experiment.lake.read() if experiment.lake else delivered.read(home / "sink" / "stored")
    samples = experiment.sampler.samples
    found = history.parse(line for file in (home / "sink" / "seen").iterdir() for line in file.read_text().splitlines())
    deliveries = AccountInput(experiment.producer.produced, {}, stored, experiment.stream.parents())
    drawn = Timeline(title, experiment.runner.injections, samples, found.reads, Counter(record.batch for record in stored))
    (home / "timeline.svg").write_text(timeline.draw(drawn))
    letters = [letter.data.decode() for _, letter in folder.letters(DiskFolder(home / "sink" / manifest.LETTERS))]
    poison = PoisonAccount(tuple(experiment.injector.poison), tuple(letters))
    return checker.check(Observations(account.compare(deliveries), found, samples, experiment.windows, manifest.LEASE_SECONDS, poison))
