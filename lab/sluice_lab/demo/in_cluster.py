"""The demo in a cluster: `make demo`. It runs the commands that a user would type, and prints them."""

import contextlib
import shlex
import shutil
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from sluice_checkpoints.names import counted
from sluice_lab.demo import tables
from sluice_lab.errors import CommandFailedError, LabError
from sluice_lab.machine import cluster, processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.scenario import environment, installing
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.environment import Environment
from sluice_lab.scenario.live_view import LiveView
from sluice_lab.scenario.pauses import CommitSampler
from sluice_lab.scenario.producer import LoadGenerator
from sluice_lab.scenario.resource_reader import ResourceReader
from sluice_lab.scenario.scenario_run import ScenarioRun, exclusive, take_account
from sluice_lab.steps import console

NAMESPACE = installing.NAMESPACE
NAME = "demo"
TABLE = f"sluice_{NAMESPACE}_{NAME}"  # the operator's default
SINK = "/var/local/sluice-demo"  # on the node
TIMEOUT_SECONDS = 240.0


@dataclass
class ClusterDemo:
    """The scenario, and the cluster in which it runs."""

    cluster: KindCluster
    scenario: ScenarioRun

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl, and print the command."""
        console.print(f"$ kubectl {shlex.join(arguments)}", style="bold", soft_wrap=True, markup=False)
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", *arguments)

    def running(self, count: int) -> bool:
        """Whether that many executors run and nothing is under way."""
        snapshot = self.scenario.view.snapshot
        return snapshot.settled and len(snapshot.running) == count


def run(name: str) -> bool:
    """Run the whole scenario; returns whether the account is right."""
    with exclusive() as home:
        found = installing.install(name)
        with environment.prepared(cluster.host_address(found).listen) as env:
            _make_sink(found)
            demo = ClusterDemo(found, _scenario(env, found))
            _execute(demo, home)
            sink = _fetch_sink(found, home)
            result = take_account(env, sink)
            tables.show(result, env.stream.shards(), demo.scenario.events, demo.scenario.sampler.commits)
    console.print(f"{home} has the manifest (demo.yaml) and what was delivered (cluster/)", soft_wrap=True)
    console.print(still_there(found), soft_wrap=True, markup=False)
    return result.right


def still_there(found: KindCluster) -> str:
    """What the demo leaves running, how to look at it, and what removes it."""
    return (
        f"The kind cluster {found.name} is still running, with the operator; the consumer was deleted, and the emulated AWS has stopped.\n"
        f"  look: kubectl --kubeconfig={found.kubeconfig} --namespace={installing.OPERATOR_NAMESPACE} get pods\n"
        "  remove: make demo-clean (operator, images, and the cluster and the Docker daemon if the demo made them)"
    )


def _execute(demo: ClusterDemo, home: Path) -> None:
    """Run from the manifest to the consumer's deletion."""
    manifest = _manifest(demo.scenario.environment, home)
    demo.scenario.sampler.start()
    try:
        with demo.scenario.view:
            _migrate(demo, manifest)
            _change(demo)
            _delete(demo)
    except LabError:
        installing.diagnose(demo.cluster, home / "diagnosis")
        raise
    finally:
        demo.scenario.sampler.stop()


def _scenario(env: Environment, found: KindCluster) -> ScenarioRun:
    checkpoints = Checkpoints(env.aws.dynamodb, TABLE)
    reader = ResourceReader(found.kubeconfig, NAMESPACE, NAME)
    view = LiveView(reader.read, lambda: len(env.producer.produced))
    return ScenarioRun(
        env, checkpoints, CommitSampler(checkpoints.committed), LoadGenerator(env.producer), view, lambda: view.snapshot.stalled or None
    )


def _manifest(env: Environment, home: Path) -> Path:
    """Write the manifest, with this run's endpoints."""
    names = {
        "namespace": NAMESPACE,
        "stream": environment.STREAM,
        "region": environment.REGION,
        "table": environment.TABLE,
        "kinesis": env.aws.kinesis_endpoint,
        "dynamodb": env.aws.dynamodb_endpoint,
        "sink": SINK,
    }
    path = home / "demo.yaml"
    path.write_text(Template(files(__package__).joinpath("demo.yaml").read_text()).substitute(names))
    return path


def _migrate(demo: ClusterDemo, manifest: Path) -> None:
    scenario = demo.scenario
    demo.kubectl("apply", f"--filename={manifest}")
    with scenario.event("kubectl apply", "migrated"):
        scenario.until("Migrated=True", lambda: scenario.view.snapshot.migrated, TIMEOUT_SECONDS)
    with scenario.event("migration complete", "first batch committed"):
        scenario.another_batch(TIMEOUT_SECONDS)
    scenario.load.start()


def _change(demo: ClusterDemo) -> None:
    """Reshard, scale and kill, while records keep coming."""
    scenario = demo.scenario
    scenario.split(3)
    scenario.merge(4, 5)
    for count in (3, 1):
        demo.kubectl("scale", f"kc/{NAME}", f"--replicas={count}")
        with scenario.event(f"scale to {count}", f"{count} running, nothing drains"):
            scenario.until(counted(count, "executor"), lambda count=count: demo.running(count), TIMEOUT_SECONDS)  # type: ignore[misc]  # a default binds it
    _kill_executor(demo)
    _kill_driver(demo)


def _kill_executor(demo: ClusterDemo) -> None:
    scenario, victim = demo.scenario, demo.scenario.view.refresh().running[0]
    demo.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
    with scenario.event("an executor killed", "replaced, and a batch"):
        scenario.until("a new executor", lambda: demo.running(1) and victim not in scenario.view.snapshot.running, TIMEOUT_SECONDS)
        scenario.another_batch(TIMEOUT_SECONDS)


def _kill_driver(demo: ClusterDemo) -> None:
    """Send SIGKILL to all of its processes. A forced deletion would let it drain: the kubelet grants two seconds."""
    scenario, victim = demo.scenario, demo.scenario.view.refresh().driver_pod
    with contextlib.suppress(CommandFailedError):  # the container may end before its shell replies
        demo.kubectl("exec", victim, "--", "sh", "-c", "kill -9 -1")
    with scenario.event("the driver killed", "next driver's first batch"):
        scenario.another_epoch(TIMEOUT_SECONDS)


def _delete(demo: ClusterDemo) -> None:
    """Stop producing, wait until all is consumed, and delete the consumer."""
    scenario = demo.scenario
    with scenario.event("no more records", "all behind a checkpoint"):
        scenario.load.stop()
        scenario.caught_up()
    with scenario.event("kubectl delete", "drained and deleted"):
        demo.kubectl("delete", f"kc/{NAME}", "--timeout=120s")
    if not scenario.checkpoints.shown()["released"]:
        raise LabError("the consumer was deleted, but its lease was not released: it was killed, not drained")


def _make_sink(found: KindCluster) -> None:
    """Make a folder of the node that pods of any user may write to."""
    processes.run("docker", "exec", found.node, "sh", "-c", f"rm -rf {SINK} && install --directory --mode=0777 {SINK}")


def _fetch_sink(found: KindCluster, home: Path) -> Path:
    sink = home / "cluster"
    shutil.rmtree(sink, ignore_errors=True)
    processes.run("docker", "cp", f"{found.node}:{SINK}", str(sink))
    return sink
