"""Many streams in one pool, on a real cluster: `python bench/pool_fleet.py [--streams 40] [--seconds 120]`.

Half of the streams are idle, half get a few records. A few of them are read a second time by consumers with a driver each, in the same run. First
all is quiet. Then one member is poisoned, one hangs, and the stream of one is resharded. Then the pool's driver is killed, and one of a driver of its
own. In the end each record is counted. It prints figures and asserts nothing.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import fleet_figures as figures
from bench import run
from fleet_cluster import CPU, FOLDER, HANG, NAME, FleetCluster, Line, Sizes, Usage
from fleet_figures import Window
from fleet_streams import FleetStream, SlowLoad, made
from rich.table import Table

from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.demo import clean
from sluice_lab.machine import cluster as clusters
from sluice_lab.scenario import environment, installing
from sluice_lab.site import bench as tables
from sluice_lab.site import bench_fleet
from sluice_lab.site.bench_fleet import ALONE, POOL
from sluice_lab.steps import console, step

POISONED, HANGING, RESHARDED = 0, 2, 6  # numbers of streams; all are slow
BESIDE = (4, 5, 10, 11, 20, 21, 26, 27)  # of those that a driver of its own reads, too: pairs of a slow and an idle one
LOOK_SECONDS, SETTLE_SECONDS = 15.0, 30.0  # the kubelet looks at pods every ten
RESHARD_SECONDS, MAX_SECONDS = 15.0, 30
SAMPLE_SECONDS = 0.5


@dataclass
class Fleet:
    """The run.

    Attributes:
        alone: streams that a driver of its own reads, too.
        troubled: consumers that are poisoned, hang or are resharded.
    """

    on: FleetCluster
    streams: list[FleetStream]
    alone: list[FleetStream]
    load: SlowLoad
    seconds: float
    troubled: list[str] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        self._start()
        quiet = self._quiet()
        self._trouble(quiet)
        self._kill()
        self._account()
        return self.found

    def _start(self) -> None:
        members = [self.on.member(one, one.name, **self._special(number)) for number, one in enumerate(self.streams)]
        self.on.prepare()
        self.found |= {"members": len(members), "alone": len(self.alone), "shards": sum(one.shards for one in self.streams)}
        with step(f"a pool of {len(members)}, and {len(self.alone)} with a driver each"):
            began = time.monotonic()
            self.on.apply([self.on.pool(), *members, *(self.on.alone(one, f"alone-{one.name}") for one in self.alone)])
            for one in self.streams:
                one.put()
            self.on.until("all are ready", lambda: not self.on.not_ready(), pause=3.0)
            self.on.until("all have all", lambda: not self._missing(self.on.lines()), pause=3.0)
            self.found["start"] = time.monotonic() - began
        self.load.start()

    def _special(self, number: int) -> dict[str, Any]:
        if number == POISONED:
            return {"onError": {"attempts": 2, "deadLetter": {"path": "file:///data/letters"}}}
        if number == HANGING:
            return {"pipeline": {"args": {"hang": HANG}}, "batch": {"maxSeconds": MAX_SECONDS}}
        return {}

    def _missing(self, lines: dict[str, list[Line]]) -> list[str]:
        there = {name: figures.first_at(of).keys() for name, of in lines.items()}
        return [name for name, one in self._consumers().items() if set(one.put_at) - there.get(name, set())]

    def _consumers(self) -> dict[str, FleetStream]:
        return {one.name: one for one in self.streams} | {f"alone-{one.name}": one for one in self.alone}

    def _waits(self, window: Window) -> dict[str, Any]:
        """Of the pool, of drivers of their own, and of the pool on the streams of these."""
        lines = self.on.lines()
        by = {name: figures.waits(one.put_at, lines.get(name, []), window) for name, one in self._consumers().items() if name not in self.troubled}
        names = {ALONE: [f"alone-{one.name}" for one in self.alone], "same": [one.name for one in self.alone]}
        names[POOL] = [one.name for one in self.streams]
        return {what: figures.spread([wait for name in of for wait in by.get(name, [])]) for what, of in names.items()}

    def _quiet(self) -> Window:
        with step(f"quiet, {self.seconds:.0f} s") as current:
            time.sleep(SETTLE_SECONDS)
            looks = [self.on.usage()]
            began = time.time()
            while time.time() - began < self.seconds:
                time.sleep(LOOK_SECONDS)
                looks.append(self.on.usage())
            window = Window(began, time.time())
            time.sleep(SETTLE_SECONDS)  # for what was put last
            self._measured(looks, window)
            current.note(f"put to sink {self.found['quiet'][POOL]['median']:.0f} ms, {self.found['cpu'][POOL]:.0f} CPU-ms a batch")
        return window

    def _measured(self, looks: list[dict[str, Usage]], window: Window) -> None:
        lines = self.on.lines()
        mine = {POOL: [one.name for one in self.streams], ALONE: [f"alone-{one.name}" for one in self.alone]}
        counts = {owner: figures.batches((lines.get(name, []) for name in names), window) for owner, names in mine.items()}
        self.found |= {
            "quiet": self._waits(window),
            "pods": figures.pods(looks[-1]),
            "memory": {owner: {role: figures.memory(looks, owner, role) for role in ("driver", "executor")} for owner in (POOL, ALONE)},
            "batches": {owner: count / window.seconds for owner, count in counts.items()},
            "cpu": {owner: figures.cpu(looks[0], looks[-1], owner) * window.seconds * 1000 / max(1, counts[owner]) for owner in (POOL, ALONE)},
        }

    def _trouble(self, quiet: Window) -> None:
        self.troubled = [self.streams[number].name for number in (POISONED, HANGING, RESHARDED)]
        host = self.on.host()
        self.found["quiet"] = self._waits(quiet)  # without those that get into trouble
        with step(f"in trouble: {', '.join(self.troubled)}") as current:
            began = time.time()
            self.on.on_node(f"touch {FOLDER}/hang")
            self.streams[POISONED].poison()
            while time.time() - began < self.seconds:
                self.streams[RESHARDED].reshard()
                time.sleep(RESHARD_SECONDS)
            window = Window(began, time.time())
            self.on.on_node(f"rm {FOLDER}/hang")
            ended = time.monotonic()
            rest = set(self.troubled) - {self.streams[POISONED].name}  # the search for a record takes minutes, to be sure that its sink is not down
            self.on.until("those that hung or were resharded have all", lambda: not rest & set(self._missing(self.on.lines())), pause=2.0)
            self.found["recovered"] = time.monotonic() - ended
            self.found["troubled"] = self._waits(window)
            self.found["same pod"] = self.on.host() == host
            pod = "the same pod" if self.found["same pod"] else "another pod"
            current.note(f"put to sink of the others {self.found['troubled'][POOL]['median']:.0f} ms; {pod}")

    def _kill(self) -> None:
        self.found["killed"] = {POOL: self._killed(self.on.host(), [one.name for one in self.streams])}
        name = f"alone-{self.alone[0].name}"
        (pod,) = self.on.get("pods", f"--selector=sluice.dev/consumer={name},sluice.dev/role=driver")
        self.found["killed"][ALONE] = self._killed(pod["metadata"]["name"], [name])

    def _killed(self, pod: str, names: list[str]) -> dict[str, Any]:
        """Seconds until each lease is taken, and until the next batch of each. Every stream gets a record at once."""
        with step(f"SIGKILL of {pod}") as current:
            before = {name: self.on.generation(name) for name in names}
            self.on.kill(pod)
            began, taken = time.time(), dict[str, float]()
            for name in names:
                self._consumers()[name].put()

            def all_taken() -> bool:
                for name in names:
                    if name not in taken and self.on.generation(name) > before[name]:
                        taken[name] = time.time() - began
                return len(taken) == len(names)

            self.on.until("each lease is taken", all_taken, pause=SAMPLE_SECONDS)
            self.on.until("all are ready", lambda: not set(names) & set(self.on.not_ready()), pause=3.0)
            resumed = self.on.until("all work", lambda: self._all_work(names, began), pause=3.0)
            current.note(f"the last lease taken after {max(taken.values()):.0f} s, the last batch after {max(resumed):.0f} s")
            return {"taken": figures.spread(list(taken.values())), "resumed": figures.spread(resumed)}

    def _all_work(self, names: list[str], killed: float) -> list[float]:
        """Seconds from the kill to the next batch of each; empty until all of them have one."""
        lines = self.on.lines()
        found = [figures.resumed(lines.get(name, []), killed) for name in names]
        return [at for at in found if at is not None] if None not in found else []

    def _account(self) -> None:
        """Every stream gets a last record; then each consumer has to have all."""
        with step("every record counted") as current:
            self.load.stop()
            for one in self.streams:
                one.put()
            self.found["letters"] = self.on.until("the dead letter", self.on.letters, pause=3.0)
            self.on.until("all have all", lambda: not self._missing(self.on.lines()), pause=3.0)
            lines = self.on.lines()
            put = {POOL: {one.name: one.put_at for one in self.streams}, ALONE: {f"alone-{one.name}": one.put_at for one in self.alone}}
            self.found["account"] = {owner: figures.account(of, lines) for owner, of in put.items()}
            current.note(str(self.found["account"][POOL]))


def shown(found: dict[str, Any]) -> None:
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in bench_fleet.rows(found["figures"]).splitlines()]
    table = Table(*head, title=tables.under(found))
    for row in rows:
        table.add_row(*row)
    console.print(table)


@click.command(help=__doc__)
@click.option("--streams", type=click.IntRange(8, 99), default=40, show_default=True)
@click.option("--seconds", default=120.0, show_default=True, help="how long all is quiet, and how long three are in trouble")
@click.option("--alone", type=click.IntRange(1, len(BESIDE)), default=4, show_default=True, help="consumers with a driver of their own beside")
@click.option("--every", default=5.0, show_default=True, help="seconds between two puts onto a slow stream, half to one and a half of that")
@click.option("--driver", default="2Gi", show_default=True, help="memory of a driver's pod")
@click.option("--executor", default="1Gi", show_default=True, help="memory of an executor's pod")
@click.option("--executors", default=2, show_default=True, help="executors of the pool")
@click.option("--cpu", default=CPU, show_default=True, help=f"CPU request of the pool's driver; all other pods request {CPU}")
@click.option("--lease", type=click.IntRange(20, 3600), default=20, show_default=True, help="leaseDurationSeconds of the pool's members")
@click.option("--json", "kept", type=click.Path(dir_okay=False, path_type=Path), help="a file for all figures")
@click.option("--cluster", "name", default=clusters.default_name, show_default="one a checkout")
@click.option("--stay", is_flag=True, help="leave the cluster as it is")
def main(**options: Any) -> None:
    """See the module."""
    name = options["name"]
    settings = {
        "streams": options["streams"],
        "slow ones get a record on each of 8 keys about every": f"{options['every']:g} s",
        "memory of a driver and of an executor (limit)": f"{options['driver']} and {options['executor']}",
        "executors of the pool": options["executors"],
        "executors of a driver of its own": 1,
        "CPU requests of the pool's driver and of each other pod": f"{options['cpu']} and {CPU}, no limits",
        "leaseDurationSeconds of the pool's members": options["lease"],
        "restart.resetAfterSeconds": 60,
        "batch.maxSeconds of the one that hangs": MAX_SECONDS,
        "all else": "the defaults (a batch every 5 s, a lease of 20 s)",
        "seconds measured": f"{options['seconds']:g}",
    }
    try:
        cluster = installing.install(name)
        work, listen = places.work(), clusters.host_address(cluster).listen
        with ExitStack() as stack:
            dynamodb, kinesis = (stack.enter_context(start(work, listen)) for start in (emulators.dynamodb_local, emulators.kinesis_local))
            aws = environment.aws(kinesis, dynamodb)
            sizes = Sizes(options["executors"], options["driver"], options["executor"], options["cpu"], options["lease"])
            on, streams = FleetCluster(cluster, aws, sizes), made(aws.kinesis, options["streams"])
            alone = [streams[number] for number in BESIDE if number < len(streams)][: options["alone"]]
            begun, load = run(), SlowLoad(streams, options["every"])
            fleet = Fleet(on, streams, alone, load, options["seconds"])
            try:
                found = {"run": begun, "settings": settings, "figures": fleet.run()}
            except BaseException:
                installing.diagnose(cluster, places.work() / f"{NAME}-diagnosis")
                raise
            finally:
                load.stop()
                on.delete()
        if options["kept"]:
            options["kept"].write_text(json.dumps(found, indent=1) + "\n")
        shown(found)
    finally:
        if not options["stay"]:
            clean.clean(name, with_images=False)


if __name__ == "__main__":
    main()
