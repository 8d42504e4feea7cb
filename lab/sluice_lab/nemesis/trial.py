"""The whole of it: a consumer of eight shards, what is measured one thing at a time, a schedule of harm, and the judgement."""

import contextlib
import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.aws.proxy import Upstream, proxy
from sluice_lab.errors import LabError
from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.nemesis import hands, judgement, manifest, measuring, picture, schedule, witness
from sluice_lab.nemesis.hands import Hands
from sluice_lab.nemesis.judgement import Evidence, Judgement
from sluice_lab.nemesis.picture import Done, Story
from sluice_lab.nemesis.player import Player
from sluice_lab.nemesis.schedule import ProxiedService
from sluice_lab.nemesis.takeover import Happening
from sluice_lab.nemesis.watch import TableSampler
from sluice_lab.scenario import delivered, installing, ledger, setting
from sluice_lab.scenario.checkpoints import Checkpoints
from sluice_lab.scenario.ledger import Books
from sluice_lab.scenario.producer import Producer, Stroll
from sluice_lab.scenario.setting import Aws
from sluice_lab.scenario.topology import Stream
from sluice_lab.scenario.view import LiveView
from sluice_lab.scenario.watching import Watching
from sluice_lab.steps import console, step

SHARDS = 8
NAMESPACE = installing.NAMESPACE
SINK = "/var/local/sluice-nemesis"  # on the node
PATIENCE, POLL = 240.0, 0.25  # seconds


@dataclass
class Trial:
    """A consumer under trial, and all that is kept of it."""

    hands: Hands
    watch: TableSampler
    view: LiveView
    stream: Stream
    producer: Producer
    stroll: Stroll
    player: Player
    checkpoints: Checkpoints
    happenings: dict[str, Happening] = field(default_factory=dict)

    def kubectl(self, *arguments: str) -> str:
        """In the consumer's namespace."""
        return self.hands.cluster.kubectl(f"--namespace={NAMESPACE}", *arguments)

    def until(self, what: str, ready: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait.

        Raises:
            LabError: it does not come within `seconds`.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise LabError(f"{what}: not within {seconds:.0f} s. Now: {', '.join(self.view.look().state())}")
            time.sleep(POLL)

    def settled(self, executors: int) -> bool:
        """Whether that many executors run and nothing is under way."""
        sight = self.view.sight
        return sight.settled and len(sight.running) == executors

    @contextmanager
    def happening(self, name: str) -> Iterator[None]:
        """One thing that happens while nothing else does, from calm to calm."""
        self.batches(1)
        began = time.time()
        with self.view.step(name):
            yield
        self.happenings[name] = Happening(name, began, time.time())
        self.player.done.append(Done(name, began, began))
        self.batches(1)

    def batches(self, count: int) -> None:
        """Wait for so many more committed batches."""
        goal = self.watch.batch + count
        self.until(f"batch {goal}", lambda: self.watch.batch >= goal)


def run(found: KindCluster, seed: int, seconds: float, home: Path) -> Judgement:
    """One trial; `home` holds afterwards what was seen, stored and drawn. The operator is there, and its namespace is empty."""
    shutil.rmtree(home, ignore_errors=True)
    places.made(home)
    with ExitStack() as stack:
        trial = stack.enter_context(_trial(found, seed))
        try:
            _play(trial, seed, seconds)
        except LabError:
            installing.diagnose(found, home / "diagnosis")
            raise
        finally:
            _stop(trial)
            _fetch(trial, home)
        return _judge(trial, f"nemesis, {seconds:.0f} s, seed {seed}", home)


@contextmanager
def _trial(found: KindCluster, seed: int) -> Iterator[Trial]:
    """Emulators behind proxies, a stream, an empty sink."""
    work, listen = places.work(), clusters.meeting(found).listen
    with ExitStack() as stack:
        with step("emulated AWS, behind proxies"):
            dynamodb = stack.enter_context(emulators.dynamodb_local(work, listen))
            kinesis = stack.enter_context(emulators.kinesis_local(work, listen))
            proxies = {
                ProxiedService.DYNAMODB: stack.enter_context(proxy(Upstream(dynamodb), listen, seed)),
                ProxiedService.KINESIS: stack.enter_context(proxy(Upstream(kinesis), listen, seed)),
            }
        aws = setting.aws(kinesis, dynamodb)
        stream, producer = Stream(aws.kinesis, manifest.STREAM), Producer(aws.kinesis, manifest.STREAM)
        stream.create(SHARDS)
        look = Watching(found.kubeconfig, NAMESPACE, manifest.NAME).look
        yield _make(found, aws, Hands(found, manifest.NAME, stream, proxies, look, SINK), producer)


def _make(found: KindCluster, aws: Aws, doing: Hands, producer: Producer) -> Trial:
    table = f"sluice_{NAMESPACE}_{manifest.NAME}"  # the operator's default
    doing.on_node(f"rm -rf {SINK} && install --directory --mode=0777 {SINK} {SINK}/seen {SINK}/stored")
    doing.pace(hands.PACE)
    view = LiveView(doing.look, lambda: len(producer.produced))
    doing.look = view.look  # where a look fails, the last one stays
    watch = TableSampler(aws.dynamodb, table, lambda: len(producer.produced))
    player = Player(doing.do, time.time, lambda moment: time.sleep(max(0.0, moment - time.time())), _tell)
    trial = Trial(doing, watch, view, doing.stream, producer, Stroll(producer), player, Checkpoints(aws.dynamodb, table))
    path = places.made(places.work() / "nemesis") / "manifest.json"
    addresses = manifest.Addresses(doing.proxies[ProxiedService.KINESIS].endpoint, doing.proxies[ProxiedService.DYNAMODB].endpoint, SINK)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest.pipeline(), manifest.consumer(addresses)]}))
    found.kubectl(f"--namespace={NAMESPACE}", "apply", f"--filename={path}")
    return trial


def _tell(done: Done) -> None:
    console.print(f"  {done.title} {done.note}", style="red", soft_wrap=True, markup=False)


def _play(trial: Trial, seed: int, seconds: float) -> None:
    """From the first batch to the consumer's deletion."""
    trial.watch.start()
    trial.stroll.start()
    with trial.view:
        with trial.view.step("the first batch"):
            trial.until("a batch", lambda: trial.watch.batch > 0)
        measuring.measure(trial)
        with trial.view.step(f"{seconds:.0f} s of nemesis, seed {seed}"):
            trial.player.play(schedule.schedule(seed, seconds))
        _end(trial)


def _end(trial: Trial) -> None:
    """Nothing is done to it any more, and nothing put: all must come to an end."""
    with trial.view.step("all records behind a checkpoint"):
        trial.stroll.stop()
        last = trial.producer.last()
        trial.until("every record behind a checkpoint", lambda: not ledger.behind(last, trial.checkpoints.shards()))
    with trial.view.step("the consumer deleted"):
        trial.kubectl("delete", f"kc/{manifest.NAME}", "--timeout=120s")


def _stop(trial: Trial) -> None:
    """Nothing of it goes on, however it ended; the emulators are about to end."""
    trial.watch.stop()
    with contextlib.suppress(LabError):
        trial.stroll.stop()
    trial.kubectl("delete", f"kc/{manifest.NAME}", f"configmap/{manifest.NAME}", "--ignore-not-found", "--timeout=120s")


def _fetch(trial: Trial, home: Path) -> None:
    """The sinks, from the node; and what was looked at, for diagnosis."""
    processes.run("docker", "cp", f"{trial.hands.cluster.node}:{SINK}", str(home / "sink"))
    kept = {
        "looks": [asdict(look) for look in trial.watch.looks],
        "done": [asdict(done) for done in trial.player.done],
        "happenings": [asdict(happening) for happening in trial.happenings.values()],
    }
    (home / "watched.json").write_text(json.dumps(kept))


def _judge(trial: Trial, title: str, home: Path) -> Judgement:
    """From what lies in the sinks, the replies to the producer, and the looks at the table."""
    stored, looks = delivered.read(home / "sink" / "stored"), trial.watch.looks
    seen = witness.parse(line for file in (home / "sink" / "seen").iterdir() for line in file.read_text().splitlines())
    books = Books(trial.producer.produced, {}, stored, trial.stream.parents())
    story = Story(title, trial.player.done, looks, seen.stints, Counter(found.batch for found in stored))
    (home / "timeline.svg").write_text(picture.draw(story))
    return judgement.judge(Evidence(ledger.account(books), seen, looks, trial.happenings, manifest.LEASE_SECONDS))
