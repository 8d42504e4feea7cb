"""Injects faults: kills processes and drops packets on the node, evicts pods, reshards the stream, fails calls of the emulators.

Each injection returns its victim, or `NO_TARGET` if there was none. If the fault lasts, it also returns a function that undoes it.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sluice_lab import places
from sluice_lab.aws import proxy
from sluice_lab.aws.proxy import Behaviour, Proxy
from sluice_lab.errors import CommandFailedError
from sluice_lab.machine import processes
from sluice_lab.machine.cluster import KindCluster
from sluice_lab.nemesis.pool_hands import PoolHands
from sluice_lab.nemesis.resets import Resets
from sluice_lab.nemesis.schedule import Fault, FaultKind, ProxiedService
from sluice_lab.scenario.installing import NAMESPACE, OPERATOR_NAMESPACE, RELEASE
from sluice_lab.scenario.observed import ConsumerSnapshot
from sluice_lab.scenario.topology import Stream, StreamShard, short

NO_TARGET = "no target"
POISON, DOWN = "poison", "down"  # what a poison record begins with; a file of the sink's folder (sink.py)
PACE, SLOW_PACE = 0.02, 0.4  # seconds per piece of a shard's records (sink.PIECES)
JOB_SECONDS, JOB_POLL = 30.0, 0.2  # until a Job that moves positions runs
FEW, MANY = 6, 12  # open shards: with `FEW` or less a merge becomes a split, with `MANY` or more a split becomes a merge
# A signal to all processes of a container at once. The node finds them by a line of their environment, where lines end with NUL: `-z`.
SIGNAL = 'pids=$(grep -lxzF "$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); [ -z "$pids" ] || kill -"$2" $pids; echo $pids'
# Waits until this executor has written to the sink within the last second: then it is in the middle of a task. Gives up after 8 s.
AT_WORK = 'for turn in $(seq 40); do [ -z "$(find "$1" -name "*.$2.*" -newermt "1 second ago")" ] || break; sleep 0.2; done'
OF_EXECUTORS = {FaultKind.KILL_EXECUTOR, FaultKind.EVICT_EXECUTOR, FaultKind.ZOMBIE, FaultKind.FREEZE_EXECUTOR, FaultKind.DELETE_EXECUTOR}
OF_STANDBYS = {FaultKind.KILL_STANDBY, FaultKind.FREEZE_STANDBY, FaultKind.LOSE_STANDBY}
FREEZES = {FaultKind.FREEZE_DRIVER, FaultKind.FREEZE_EXECUTOR, FaultKind.FREEZE_STANDBY}
CUTS = {FaultKind.ZOMBIE, FaultKind.CUT_DRIVER, FaultKind.LOSE_DRIVER, FaultKind.LOSE_STANDBY}
OUTCOMES = {
    FaultKind.THROTTLE: proxy.CallOutcome.THROTTLED,
    FaultKind.FAIL: proxy.CallOutcome.FAILED,
    FaultKind.CUT: proxy.CallOutcome.CUT,
    FaultKind.LOSE: proxy.CallOutcome.LOST,
}


@dataclass
class Injector:
    """Injects faults into one consumer.

    Attributes:
        observe: returns a snapshot of the consumer now.
        sink: its folder on the node.
        maintain: does to the table of the lake what its owners do; says what.
        poison: the records that were put on which the pipeline raises.
        resets: asks for them; set before one is injected.
        pool: the hands on the consumer's pool; None: it has a driver of its own.
    """

    cluster: KindCluster
    name: str
    stream: Stream
    proxies: Mapping[ProxiedService, Proxy]
    observe: Callable[[], ConsumerSnapshot]
    sink: str
    maintain: Callable[[], str] = lambda: NO_TARGET
    poison: list[str] = field(default_factory=list)
    resets: Resets | None = None
    pool: PoolHands | None = None

    def inject(self, fault: Fault) -> tuple[str, Callable[[], None] | None]:
        """Inject a fault; returns its victim, and how to undo it if it lasts."""
        if self.pool and (found := self.pool.inject(fault)):
            return found
        if once := self._once(fault):
            return once(), None
        if fault.kind is FaultKind.SLOW:
            self.pace(SLOW_PACE)
            return "", lambda: self.pace(PACE)
        if fault.kind is FaultKind.DOWN:
            self.on_node(f"touch {self.sink}/{DOWN}")
            return "", self._up
        if fault.kind in FREEZES:
            return self._freeze(fault)
        return self._cut_off(fault) if fault.kind in CUTS else self._service(fault)

    def _once(self, fault: Fault) -> Callable[[], str] | None:
        """The injection of a fault that does not last, or None."""
        return {
            FaultKind.KILL_EXECUTOR: lambda: self._kill_executor(fault),
            FaultKind.EVICT_EXECUTOR: lambda: self._hit(fault, self.evict),
            FaultKind.KILL_DRIVER: lambda: self._hit(fault, self._kill_driver),
            FaultKind.KILL_STANDBY: lambda: self._hit(fault, self._kill_driver),
            FaultKind.EVICT_DRIVER: lambda: self._hit(fault, self.evict),
            FaultKind.DELETE_DRIVER: lambda: self._hit(fault, self.delete),
            FaultKind.DELETE_EXECUTOR: lambda: self._hit(fault, self.delete),
            FaultKind.KILL_OPERATOR: self.kill_operator,
            FaultKind.SPLIT: lambda: self._reshard(fault),
            FaultKind.MERGE: lambda: self._reshard(fault),
            FaultKind.SCALE: lambda: self.scale(fault.count),
            FaultKind.MAINTAIN: self.maintain,
            FaultKind.POISON: lambda: self._poison(fault),
            FaultKind.DEPLOY: lambda: self.resets.deploy() if self.resets else NO_TARGET,
            FaultKind.RESET: lambda: self.resets.ask(fault.pick) if self.resets else NO_TARGET,
            FaultKind.KILL_JOB: self.kill_job,
        }.get(fault.kind)

    def _poison(self, fault: Fault) -> str:
        shards = sorted(shard.id for shard in self.stream.shards().values() if not shard.closed)
        shard, data = chosen(shards, fault.pick), f"{POISON}-{len(self.poison)}"
        self.stream.put(shard, data.encode())
        self.poison.append(data)
        return f"{data} in {short(shard)}"

    def _up(self) -> None:
        self.on_node(f"rm -f {self.sink}/{DOWN}")

    # -- pods ----------------------------------------------------------------------------------------------------------------------

    def kill(self, line: str) -> str:
        """Send SIGKILL to all processes with this line in their environment."""
        return self._signal(line, "KILL")

    def _signal(self, line: str, signal: str) -> str:
        hit = processes.run("docker", "exec", self.cluster.node, "sh", "-c", SIGNAL, "signal", line, signal).split()
        return line.partition("=")[2] if hit else NO_TARGET

    def _freeze(self, fault: Fault) -> tuple[str, Callable[[], None] | None]:
        """Stop all processes of a pod's container, as a machine that swaps does. They continue afterwards, unless they are gone."""
        line = _executor_line if fault.kind in OF_EXECUTORS else _driver_line
        found = self._hit(fault, lambda pod: self._signal(line(pod), "STOP"))
        if found == NO_TARGET:
            return NO_TARGET, None

        def undo() -> None:
            self._signal(line(found), "CONT")

        return found, undo

    def evict(self, pod: str) -> str:
        """Evict a pod through the API, as `kubectl drain` does."""
        path = places.made(places.work() / "nemesis") / "eviction.json"
        path.write_text(json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}))
        try:
            self.cluster.kubectl("create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction", f"--filename={path}")
        except CommandFailedError as error:
            if "NotFound" in str(error) or "not found" in str(error):
                return NO_TARGET
            raise
        return pod

    def delete(self, pod: str) -> str:
        """Delete a pod by force: it is gone from the API at once, and its processes end a little later."""
        self.cluster.kubectl(f"--namespace={NAMESPACE}", "delete", "pod", pod, "--force", "--grace-period=0", "--ignore-not-found", "--wait=false")
        return pod

    def kill_operator(self) -> str:
        """Kill the operator's leader."""
        lease = json.loads(self.cluster.kubectl(f"--namespace={OPERATOR_NAMESPACE}", "get", "lease", RELEASE, "--output=json"))
        leader = str((lease.get("spec") or {}).get("holderIdentity") or "").rpartition("_")[0]
        return self.kill(f"POD_NAME={leader}") if leader else NO_TARGET

    def kill_job(self) -> str:
        """Kill the pod that moves the positions, as soon as it runs; gives up after some time."""
        deadline = time.monotonic() + JOB_SECONDS
        while time.monotonic() < deadline:
            if pod := self._job_pod():
                return self.kill(f"HOSTNAME={pod}")
            time.sleep(JOB_POLL)
        return NO_TARGET

    def _job_pod(self) -> str:
        found = self.cluster.kubectl(
            f"--namespace={NAMESPACE}", "get", "pods", "--selector=sluice.dev/position", "--field-selector=status.phase=Running", "--output=name"
        )
        return found.split()[0].removeprefix("pod/") if found.strip() else ""

    def scale(self, count: int) -> str:
        """Scale, as a user would."""
        if self.pool:
            return self.pool.scale(count)
        self.cluster.kubectl(f"--namespace={NAMESPACE}", "scale", f"kc/{self.name}", f"--replicas={count}")
        return ""

    def pace(self, seconds: float) -> None:
        """Set how long the sink takes for a piece."""
        self.on_node(f"echo {seconds} >{self.sink}/pace.new && mv {self.sink}/pace.new {self.sink}/pace")

    def workers(self, epoch: str) -> int:
        """How many executors of an epoch have worked. A running pod may not have been given tasks yet."""
        names = [name.split(".") for name in self.on_node(f"ls {self.sink}/seen").split()]
        return len({name[1] for name in names if name[0] == epoch and name[1] != "driver"})

    def busy(self, pod: str) -> None:
        """Wait until an executor is at work, so that a fault interrupts a task. The wait has a limit."""
        processes.run("docker", "exec", self.cluster.node, "sh", "-c", AT_WORK, "at-work", f"{self.sink}/seen", pod)

    def on_node(self, script: str) -> str:
        """Run a line of shell on the node."""
        return processes.run("docker", "exec", self.cluster.node, "sh", "-c", script)

    def _kill_executor(self, fault: Fault) -> str:
        def kill(pod: str) -> str:
            self.busy(pod)
            return self.kill(_executor_line(pod))

        return self._hit(fault, kill)

    def _kill_driver(self, pod: str) -> str:
        return self.kill(_driver_line(pod))

    def _hit(self, fault: Fault, inject: Callable[[str], str]) -> str:
        pod = self._victim(fault)
        return inject(pod) if pod else NO_TARGET

    def _victim(self, fault: Fault) -> str:
        """The pod that a fault is about: an executor of the driver, the driver, or its standby. Empty if there is none."""
        snapshot = self.observe()
        if fault.kind in OF_EXECUTORS:
            return chosen(snapshot.running, fault.pick)
        return snapshot.standby_pod if fault.kind in OF_STANDBYS else snapshot.driver_pod

    # -- network -------------------------------------------------------------------------------------------------------------------

    def _cut_off(self, fault: Fault) -> tuple[str, Callable[[], None] | None]:
        """Cut an executor off from everything but Kinesis and the sink, a folder or S3; the driver from DynamoDB; or a driver from everything."""
        pod = self._victim(fault)
        address = self._address(pod) if pod else ""
        if not pod or not address:
            return NO_TARGET, None
        rules = self._cuts(fault.kind, address)
        if fault.kind is FaultKind.ZOMBIE:
            self.busy(pod)
        self._rules("-I", rules[::-1])
        return pod, lambda: self._rules("-D", rules)

    def _cuts(self, kind: FaultKind, address: str) -> list[str]:
        if kind is FaultKind.CUT_DRIVER:
            return no_dynamodb(address, self.proxies[ProxiedService.DYNAMODB].endpoint)
        if kind is FaultKind.ZOMBIE:
            return only(address, *(self.proxies[name].endpoint for name in (ProxiedService.KINESIS, ProxiedService.S3) if name in self.proxies))
        return only(address)

    def _rules(self, how: str, rules: Sequence[str]) -> None:
        """Change rules of the table `raw`, which the node applies before it rewrites any address."""
        self.on_node(" && ".join(f"iptables -w -t raw {how} PREROUTING {rule}" for rule in rules))

    def _address(self, pod: str) -> str:
        return self.cluster.kubectl(f"--namespace={NAMESPACE}", "get", "pod", pod, "--ignore-not-found", "--output=jsonpath={.status.podIP}")

    # -- services ------------------------------------------------------------------------------------------------------------------

    def _service(self, fault: Fault) -> tuple[str, Callable[[], None] | None]:
        assert fault.service is not None  # noqa: S101 - the schedule names one for each of these
        service = self.proxies[fault.service]
        behaviour = Behaviour(delay=fault.share) if fault.kind is FaultKind.DELAY else Behaviour(OUTCOMES[fault.kind], fault.share)
        service.behaviour = behaviour

        def undo() -> None:
            if service.behaviour is behaviour:  # no later fault has replaced it
                service.behaviour = proxy.NORMAL

        return "", undo

    def _reshard(self, fault: Fault) -> str:
        """Split a shard, or merge two neighbours. Many open shards turn a split into a merge, few a merge into a split."""
        shards = sorted((shard for shard in self.stream.shards().values() if not shard.closed), key=lambda shard: shard.low)
        if len(shards) > FEW and (fault.kind is FaultKind.MERGE or len(shards) >= MANY):
            one, other = neighbours(shards, fault.pick)
            return f"{one.short}+{other.short} to {_named(self.stream.merge(int(one.short), int(other.short)))}"
        shard = shards[int(fault.pick * len(shards))]
        return f"{shard.short} to {_named(self.stream.split(int(shard.short)))}"


def chosen(names: Sequence[str], pick: float) -> str:
    """The name that `pick` selects; empty if there are none."""
    return sorted(names)[int(pick * len(names))] if names else ""


def _driver_line(pod: str) -> str:
    """By which line of its environment a process of that driver is known."""
    return f"SLUICE_POD_NAME={pod}"


def _executor_line(pod: str) -> str:
    """By which line of its environment a process of that executor is known."""
    return f"SPARK_EXECUTOR_POD_NAME={pod}"


def neighbours(shards: Sequence[StreamShard], pick: float) -> tuple[StreamShard, StreamShard]:
    """Two shards with adjacent ranges of hash keys. `shards` are open, and sorted by hash key."""
    at = int(pick * (len(shards) - 1))
    return shards[at], shards[at + 1]


def only(pod: str, *endpoints: str) -> list[str]:
    """Rules that let a pod reach these services only. The first rule that matches decides."""
    parts = [_parts(endpoint) for endpoint in endpoints]
    to = [f"-s {pod} -d {host} -p tcp --dport {port} -j ACCEPT" for host, port in parts]
    back = [f"-s {host} -d {pod} -p tcp --sport {port} -j ACCEPT" for host, port in parts]
    return [*to, *back, f"-s {pod} -j DROP", f"-d {pod} -j DROP"]


def no_dynamodb(pod: str, dynamodb: str) -> list[str]:
    """A rule that drops a pod's packets to one service. The pod gets no reply, and no refusal either."""
    host, port = _parts(dynamodb)
    return [f"-s {pod} -d {host} -p tcp --dport {port} -j DROP"]


def _parts(endpoint: str) -> tuple[str, int]:
    found = urlsplit(endpoint)
    assert found.hostname is not None  # noqa: S101 - the lab's own endpoints
    assert found.port is not None  # noqa: S101
    return found.hostname, found.port


def _named(shards: Sequence[str]) -> str:
    return "+".join(map(short, shards))
