"""The story in a cluster: `make demo`. What a user would type is printed as such, and is what is run."""

import contextlib
import shlex
import shutil
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from sluice_lab.demo import tables
from sluice_lab.errors import CommandFailedError, LabError
from sluice_lab.machine import cluster, processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.scenario import installing, setting
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.pauses import Sampler
from sluice_lab.scenario.producer import Stroll
from sluice_lab.scenario.setting import World
from sluice_lab.scenario.stage import Stage, alone, reckon
from sluice_lab.scenario.view import LiveView
from sluice_lab.scenario.watching import Watching
from sluice_lab.steps import console

NAMESPACE = installing.NAMESPACE
NAME = "demo"
TABLE = f"sluice_{NAMESPACE}_{NAME}"  # the operator's default
SINK = "/var/local/sluice-demo"  # on the node
PATIENCE_SECONDS = 240.0


@dataclass
class Scene:
    """Where the story takes place."""

    cluster: KindCluster
    stage: Stage

    def kubectl(self, *arguments: str) -> str:
        """Run what a user would type."""
        console.print(f"$ kubectl {shlex.join(arguments)}", style="bold", soft_wrap=True, markup=False)
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", *arguments)

    def running(self, count: int) -> bool:
        """Whether that many executors run and everything is as the resource wants it."""
        sight = self.stage.view.sight
        return sight.settled and len(sight.running) == count


def tell(name: str) -> bool:
    """The whole story; gives whether it ended well."""
    with alone() as home:
        found = installing.install(name)
        with setting.world(cluster.meeting(found).listen) as world:
            _make_sink(found)
            scene = Scene(found, _stage(world, found))
            _play(scene, home)
            sink = _fetch_sink(found, home)
            result = reckon(world, sink)
            tables.show(result, world.stream.shards(), scene.stage.events, scene.stage.sampler.commits)
    console.print(f"what was applied (demo.yaml) and what was delivered (cluster/) lies in {home}", soft_wrap=True)
    return result.right


def _play(scene: Scene, home: Path) -> None:
    """From the manifest to the consumer's deletion."""
    manifest = _manifest(scene.stage.world, home)
    scene.stage.sampler.start()
    try:
        with scene.stage.view:
            _begin(scene, manifest)
            _live(scene)
            _end(scene)
    except LabError:
        installing.diagnose(scene.cluster, home / "diagnosis")
        raise
    finally:
        scene.stage.sampler.stop()


def _stage(world: World, found: KindCluster) -> Stage:
    checkpoints = Checkpoints(world.aws.dynamodb, TABLE)
    watching = Watching(found.kubeconfig, NAMESPACE, NAME)
    view = LiveView(watching.look, lambda: len(world.producer.produced))
    return Stage(world, checkpoints, Sampler(checkpoints.committed), Stroll(world.producer), view, lambda: view.sight.stalled or None)


def _manifest(world: World, home: Path) -> Path:
    """The manifest to apply, with this run's addresses in it."""
    names = {
        "namespace": NAMESPACE,
        "stream": setting.STREAM,
        "region": setting.REGION,
        "table": setting.TABLE,
        "kinesis": world.aws.kinesis_endpoint,
        "dynamodb": world.aws.dynamodb_endpoint,
        "sink": SINK,
    }
    path = home / "demo.yaml"
    path.write_text(Template(files(__package__).joinpath("demo.yaml").read_text()).substitute(names))
    return path


def _begin(scene: Scene, manifest: Path) -> None:
    stage = scene.stage
    scene.kubectl("apply", f"--filename={manifest}")
    with stage.event("kubectl apply", "migrated"):
        stage.until("Migrated=True", lambda: stage.view.sight.migrated, PATIENCE_SECONDS)
    with stage.event("gate open", "first batch committed"):
        stage.another_batch(PATIENCE_SECONDS)
    stage.stroll.start()


def _live(scene: Scene) -> None:
    """Everything that happens to a consumer, while records keep coming."""
    stage = scene.stage
    stage.split(3)
    stage.merge(4, 5)
    for count in (3, 1):
        scene.kubectl("scale", f"kc/{NAME}", f"--replicas={count}")
        with stage.event(f"scale to {count}", f"{count} running, nothing drains"):
            stage.until(f"{count} executors", lambda count=count: scene.running(count), PATIENCE_SECONDS)  # type: ignore[misc]  # a default binds it
    _kill_executor(scene)
    _kill_driver(scene)


def _kill_executor(scene: Scene) -> None:
    stage, victim = scene.stage, scene.stage.view.look().running[0]
    scene.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
    with stage.event("an executor killed", "replaced, and a batch"):
        stage.until("a new executor", lambda: scene.running(1) and victim not in stage.view.sight.running, PATIENCE_SECONDS)
        stage.another_batch(PATIENCE_SECONDS)


def _kill_driver(scene: Scene) -> None:
    """SIGKILL to all of it at once; even a forced deletion would let it drain, for the kubelet gives two seconds."""
    stage, victim = scene.stage, scene.stage.view.look().driver_pod
    with contextlib.suppress(CommandFailedError):  # the shell goes with the container, or not
        scene.kubectl("exec", victim, "--", "sh", "-c", "kill -9 -1")
    with stage.event("the driver killed", "next driver's first batch"):
        stage.another_epoch(PATIENCE_SECONDS)


def _end(scene: Scene) -> None:
    """No more records; then the consumer goes, drained."""
    stage = scene.stage
    with stage.event("no more records", "all behind a checkpoint"):
        stage.stroll.stop()
        stage.caught_up()
    with stage.event("kubectl delete", "drained and gone"):
        scene.kubectl("delete", f"kc/{NAME}", "--timeout=120s")
    if not stage.checkpoints.shown()["released"]:
        raise LabError("the consumer was deleted, but its lease was not released: it was killed, not drained")


def _make_sink(found: KindCluster) -> None:
    """A folder of the node that pods may write to whatever user they run as."""
    processes.run("docker", "exec", found.node, "sh", "-c", f"rm -rf {SINK} && install --directory --mode=0777 {SINK}")


def _fetch_sink(found: KindCluster, home: Path) -> Path:
    sink = home / "cluster"
    shutil.rmtree(sink, ignore_errors=True)
    processes.run("docker", "cp", f"{found.node}:{SINK}", str(sink))
    return sink
