"""What does the harm: processes killed on the node, packets dropped there, evictions, reshards, and the weather of the emulators.

Every deed names what it hit, or says that there was nothing to hit. A deed that lasts is undone by `undo`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from sluice_lab import places
from sluice_lab.aws import proxy
from sluice_lab.aws.proxy import Proxy, Weather
from sluice_lab.errors import CommandFailedError
from sluice_lab.machine import processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.nemesis.schedule import Deed, FaultKind, ProxiedService
from sluice_lab.scenario.installing import NAMESPACE, OPERATOR_NAMESPACE, RELEASE
from sluice_lab.scenario.observed import Sight
from sluice_lab.scenario.topology import Stream, StreamShard, short

NO_TARGET = "nobody there"
PACE, SLOW_PACE = 0.02, 0.4  # seconds for a piece of a shard's records (sink.PIECES)
FEW, MANY = 6, 12  # open shards: below, a merge becomes a split; above, a split becomes a merge
FIRST = 8  # of the stream
# SIGKILL to every process of a container at once, found by a line of their environment. As the node sees them; `-z` as lines end with NUL there.
KILL = 'pids=$(grep -lxzF "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); [ -z "$pids" ] || kill -9 $pids; echo $pids'
# Waits, not for ever, until this executor has written to the sink within the last second: it is in the middle of a task then.
AT_WORK = 'for turn in $(seq 40); do [ -z "$(find "$1" -name "*.$2.*" -newermt "1 second ago")" ] || break; sleep 0.2; done'
WEATHERS = {
    FaultKind.THROTTLE: proxy.CallOutcome.THROTTLED,
    FaultKind.FAIL: proxy.CallOutcome.FAILED,
    FaultKind.CUT: proxy.CallOutcome.CUT,
    FaultKind.LOSE: proxy.CallOutcome.LOST,
}


@dataclass
class Hands:
    """Does deeds to one consumer.

    Attributes:
        look: a look at it, now.
        sink: its folder on the node.
    """

    cluster: KindCluster
    name: str
    stream: Stream
    proxies: Mapping[ProxiedService, Proxy]
    look: Callable[[], Sight]
    sink: str

    def do(self, deed: Deed) -> tuple[str, Callable[[], None] | None]:
        """Do it; gives what it hit, and what ends it if it lasts."""
        if once := self._once(deed):
            return once(), None
        if deed.kind is FaultKind.SLOW:
            self.pace(SLOW_PACE)
            return "", lambda: self.pace(PACE)
        return self._cut_off(deed) if deed.kind in {FaultKind.ZOMBIE, FaultKind.CUT_DRIVER} else self._weather(deed)

    def _once(self, deed: Deed) -> Callable[[], str] | None:
        """What does a deed that does not last."""
        return {
            FaultKind.KILL_EXECUTOR: lambda: self._executor(deed, lambda pod: self.kill(f"SPARK_EXECUTOR_POD_NAME={pod}")),
            FaultKind.EVICT_EXECUTOR: lambda: self._executor(deed, self.evict),
            FaultKind.KILL_DRIVER: lambda: self._driver(lambda pod: self.kill(f"SLUICE_POD_NAME={pod}")),
            FaultKind.EVICT_DRIVER: lambda: self._driver(self.evict),
            FaultKind.KILL_OPERATOR: self.kill_operator,
            FaultKind.SPLIT: lambda: self._reshard(deed),
            FaultKind.MERGE: lambda: self._reshard(deed),
            FaultKind.SCALE: lambda: self.scale(deed.count),
        }.get(deed.kind)

    # -- pods ----------------------------------------------------------------------------------------------------------------------

    def kill(self, line: str) -> str:
        """SIGKILL to all processes with this line in their environment."""
        killed = processes.run("docker", "exec", self.cluster.node, "sh", "-c", KILL, "kill", line).split()
        return line.partition("=")[2] if killed else NO_TARGET

    def evict(self, pod: str) -> str:
        """By the API, as a drained node does."""
        path = places.made(places.work() / "nemesis") / "eviction.json"
        path.write_text(json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}))
        try:
            self.cluster.kubectl("create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction", f"--filename={path}")
        except CommandFailedError as error:
            if "NotFound" in str(error) or "not found" in str(error):
                return NO_TARGET
            raise
        return pod

    def kill_operator(self) -> str:
        """The replica that leads."""
        lease = json.loads(self.cluster.kubectl(f"--namespace={OPERATOR_NAMESPACE}", "get", "lease", RELEASE, "--output=json"))
        leader = str((lease.get("spec") or {}).get("holderIdentity") or "").rpartition("_")[0]
        return self.kill(f"POD_NAME={leader}") if leader else NO_TARGET

    def scale(self, count: int) -> str:
        """As a user would."""
        self.cluster.kubectl(f"--namespace={NAMESPACE}", "scale", f"kc/{self.name}", f"--replicas={count}")
        return ""

    def pace(self, seconds: float) -> None:
        """How long the sink takes for a piece."""
        self.on_node(f"echo {seconds} >{self.sink}/pace.new && mv {self.sink}/pace.new {self.sink}/pace")

    def workers(self, epoch: str) -> int:
        """How many executors of an epoch have worked; a pod that runs is not yet one that is given tasks."""
        names = [name.split(".") for name in self.on_node(f"ls {self.sink}/seen").split()]
        return len({name[1] for name in names if name[0] == epoch and name[1] != "driver"})

    def busy(self, pod: str) -> None:
        """Wait until an executor is at work, if it ever is: what is interrupted has to be under way."""
        processes.run("docker", "exec", self.cluster.node, "sh", "-c", AT_WORK, "at-work", f"{self.sink}/seen", pod)

    def on_node(self, script: str) -> str:
        """Run a line of shell on the node."""
        return processes.run("docker", "exec", self.cluster.node, "sh", "-c", script)

    def _executor(self, deed: Deed, harm: Callable[[str], str]) -> str:
        found = chosen(self.look().running, deed.pick)
        if not found:
            return NO_TARGET
        if deed.kind is FaultKind.KILL_EXECUTOR:
            self.busy(found)
        return harm(found)

    def _driver(self, harm: Callable[[str], str]) -> str:
        pod = self.look().driver_pod
        return harm(pod) if pod else NO_TARGET

    # -- network -------------------------------------------------------------------------------------------------------------------

    def _cut_off(self, deed: Deed) -> tuple[str, Callable[[], None] | None]:
        """An executor from everything but Kinesis and the sink, which is a folder; or the driver from DynamoDB."""
        zombie = deed.kind is FaultKind.ZOMBIE
        sight = self.look()
        pod = chosen(sight.running, deed.pick) if zombie else sight.driver_pod
        address = self._address(pod) if pod else ""
        if not pod or not address:
            return NO_TARGET, None
        rules = (
            but_kinesis(address, self.proxies[ProxiedService.KINESIS].endpoint)
            if zombie
            else no_dynamodb(address, self.proxies[ProxiedService.DYNAMODB].endpoint)
        )
        if zombie:
            self.busy(pod)
        self._rules("-I", rules[::-1])
        return pod, lambda: self._rules("-D", rules)

    def _rules(self, how: str, rules: Sequence[str]) -> None:
        """In front of the node's own: before any address is rewritten."""
        self.on_node(" && ".join(f"iptables -w -t raw {how} PREROUTING {rule}" for rule in rules))

    def _address(self, pod: str) -> str:
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", "get", "pod", pod, "--ignore-not-found", "--output=jsonpath={.status.podIP}")

    # -- services ------------------------------------------------------------------------------------------------------------------

    def _weather(self, deed: Deed) -> tuple[str, Callable[[], None] | None]:
        assert deed.service is not None  # noqa: S101 - the schedule names one for each of these
        behind = self.proxies[deed.service]
        found = Weather(delay=deed.share) if deed.kind is FaultKind.DELAY else Weather(WEATHERS[deed.kind], deed.share)
        behind.weather = found

        def undo() -> None:
            if behind.weather is found:
                behind.weather = proxy.FAIR

        return "", undo

    def _reshard(self, deed: Deed) -> str:
        """A split, or a merge of neighbours; the other where there are many, or few, open shards already."""
        shards = sorted((shard for shard in self.stream.shards().values() if not shard.closed), key=lambda shard: shard.low)
        if len(shards) > FEW and (deed.kind is FaultKind.MERGE or len(shards) >= MANY):
            one, other = neighbours(shards, deed.pick)
            return f"{one.short}+{other.short} to {_named(self.stream.merge(int(one.short), int(other.short)))}"
        shard = shards[int(deed.pick * len(shards))]
        return f"{shard.short} to {_named(self.stream.split(int(shard.short)))}"


def chosen(names: Sequence[str], pick: float) -> str:
    """One of them; empty if there are none."""
    return sorted(names)[int(pick * len(names))] if names else ""


def neighbours(shards: Sequence[StreamShard], pick: float) -> tuple[StreamShard, StreamShard]:
    """Two whose hash keys touch, of open shards in the order of these."""
    at = int(pick * (len(shards) - 1))
    return shards[at], shards[at + 1]


def but_kinesis(pod: str, kinesis: str) -> list[str]:
    """Rules that leave a pod nothing but one service; in order, the first that fits decides."""
    host, port = _parts(kinesis)
    return [
        f"-s {pod} -d {host} -p tcp --dport {port} -j ACCEPT",
        f"-s {host} -d {pod} -p tcp --sport {port} -j ACCEPT",
        f"-s {pod} -j DROP",
        f"-d {pod} -j DROP",
    ]


def no_dynamodb(pod: str, dynamodb: str) -> list[str]:
    """A rule that takes one service from a pod: packets vanish, nobody says no."""
    host, port = _parts(dynamodb)
    return [f"-s {pod} -d {host} -p tcp --dport {port} -j DROP"]


def _parts(endpoint: str) -> tuple[str, int]:
    found = urlsplit(endpoint)
    assert found.hostname is not None  # noqa: S101 - the lab's own endpoints
    assert found.port is not None  # noqa: S101
    return found.hostname, found.port


def _named(shards: Sequence[str]) -> str:
    return "+".join(map(short, shards))
