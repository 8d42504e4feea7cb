"""Sluice beside KCL 3: the same stream, the same records, the same split, merge and kill, counted from the producer's own log.

Both consume one stream of an emulator at the same time, each with its own positions, at their default settings. While they are at its tip, one shard
is split and two are merged. Then each is killed in the middle of a unit and started again, now with settings that make it quick. A backlog is read
from a canned stream, which keeps to a shard's limits as the service does, by one after the other. `bench.py compare` prints it, and asserts nothing.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import compare_log
import compare_sides
from botocore.config import Config
from canned import Options
from compare_log import Window
from compare_producer import RATE, SHARDS, SIZE, Producer
from compare_sides import KCL, SLUICE, Services, Side
from consumer_run import kinesis
from slab import CBOR, FIRST_SEQUENCE, JSON, SEQUENCE_STEP, Shape

from sluice_lab import places
from sluice_lab.aws import emulators
from sluice_lab.machine import kcl_jars, processes
from sluice_lab.scenario.topology import Stream

STREAM = "bench"
SETTLED, TIP, QUICK_TIP = 5.0, 20.0, 15.0
BETWEEN, AFTER_RESHARD = 2.0, 8.0
HOLDING = 10.0  # for all open shards to be in a unit that does not return
PATIENCE = 240.0  # a leader of KCL that was killed keeps its lock for two minutes
BACKLOG = 100_000  # records of each shard
OLD_MILLIS = 3_600_000  # since the backlog arrived
QUICK: Mapping[str, dict[str, Any]] = {SLUICE: {"intervalSeconds": 0.5}, KCL: {"idleTimeBetweenReadsInMillis": 200}}
CATCHING_UP: Mapping[str, dict[str, Any]] = {**QUICK, SLUICE: {"intervalSeconds": 0}}

Figures = dict[str, float]
SETTINGS: Mapping[str, str] = {
    "stream": f"{SHARDS} shards, {RATE} records of {SIZE} B a second and shard, read by both at once but for the quick tip",
    "reshard": f"a split, and a merge {BETWEEN:g} s later",
    "KCL": f"{kcl_jars.version()}, one worker, polling from TRIM_HORIZON, a checkpoint at the end of each call, no metrics, else its defaults",
    "defaults": "Sluice intervalSeconds 5, leaseDurationSeconds 20, KCL idleTimeBetweenReadsInMillis 1500, failoverTimeMillis 10000",
    "quick": f"Sluice intervalSeconds 0.5, and 0 for the backlog, KCL idleTimeBetweenReadsInMillis {QUICK[KCL]['idleTimeBetweenReadsInMillis']}",
    "backlog": f"{SHARDS * BACKLOG:,} records of {SIZE} B",
}


class Meeting:
    def __init__(self, stream: Stream, producer: Producer, sides: Mapping[str, Side]) -> None:
        self.stream, self.producer, self.sides = stream, producer, sides

    def reach(self, names: tuple[str, ...], until: float) -> None:
        """Waits until these have been handed all that was put before then; a call whose reply is awaited is in no log yet."""
        for side in map(self.sides.__getitem__, names):
            side.wait(functools.partial(self._has, side, until), PATIENCE, "all that was put")

    def _has(self, side: Side, until: float) -> bool:
        if self.producer.complete_until < until:
            return False
        put = Window(0, until).of(self.producer.log())  # something was, before they were started
        return not compare_log.account(put, side.units())["missing"]

    def tip(self, names: tuple[str, ...], seconds: float) -> dict[str, Figures]:
        """Milliseconds from put to processed: median and 90th percentile."""
        self.reach(names, time.time())
        time.sleep(SETTLED)
        window = Window(time.time(), time.time() + seconds)
        time.sleep(seconds)
        self.reach(names, window.ended)
        return {name: self._waited(self.sides[name], window) for name in names}

    def _waited(self, side: Side, window: Window) -> Figures:
        millis = [seconds * 1000 for seconds in compare_log.waits(window.of(self.producer.log()), side.units())]
        return {"median": statistics.median(millis), "p90": statistics.quantiles(millis, n=10)[8]}

    def reshard(self) -> dict[str, Figures]:
        """A split and a merge, and the account of what was put from the one until some seconds after the other."""
        begun = time.time()
        self.stream.split(0)
        time.sleep(BETWEEN)
        self.stream.merge(2, 3)
        time.sleep(AFTER_RESHARD)
        window = Window(begun, time.time())
        self.reach((SLUICE, KCL), window.ended)
        return {name: self._resharded(side, window) for name, side in self.sides.items()}

    def _resharded(self, side: Side, window: Window) -> Figures:
        put, units = window.of(self.producer.log()), side.units()
        early = compare_log.before_parents(units, self.stream.parents())
        return {**compare_log.account(put, units), "before parents": early, "longest": max(compare_log.waits(put, units))}

    def kill(self, name: str) -> float:
        """Kills it in the middle of units of all open shards, and starts it again; returns when it was killed, epoch seconds."""
        side = self.sides[name]
        wanted = {shard.id for shard in self.stream.shards().values() if not shard.closed}
        side.hold.touch()
        since = time.time()
        side.wait(lambda: _held(side) >= wanted or (bool(_held(side)) and time.time() - since > HOLDING), PATIENCE, "a unit to be killed in")
        killed = side.kill()
        side.hold.unlink()
        side.start(quick=True)
        return killed

    def crashed(self, name: str, killed: float) -> Figures:
        """The account, from the start of the first unit that was killed until all is in order again."""
        side = self.sides[name]
        side.wait(lambda: any(unit.run for unit in side.units()), PATIENCE, "its first unit after a kill")
        window = Window(0, time.time())
        self.reach((name,), window.ended)
        units = side.units()
        first = min(unit.at for unit in units if unit.run)
        put = window.of(self.producer.log())
        return {**compare_log.account(put, units), **compare_log.replays(units), "next": first - killed}

    def order(self) -> dict[str, Figures]:
        log = self.producer.log()
        counted = {name: side.units() for name, side in self.sides.items()}
        return {
            name: {"out of order": compare_log.out_of_order(units), "unknown": len(compare_log.handed(units).keys() - log.keys())}
            for name, units in counted.items()
        }


def _held(side: Side) -> set[str]:
    return {shard for unit in side.units() if unit.held for shard in unit.records}


@contextmanager
def meeting(dynamodb: str) -> Iterator[Meeting]:
    with emulators.kinesis_local(places.work()) as endpoint, tempfile.TemporaryDirectory() as folder:
        once = Config(retries={"total_max_attempts": 1})  # else a call may put records twice, of which the log has one
        api = boto3.client("kinesis", endpoint_url=endpoint, region_name="us-east-1", config=once)
        stream = Stream(api, STREAM)
        stream.create(SHARDS)
        services = Services(endpoint, dynamodb, STREAM)
        sides = {name: compare_sides.made(name, services, Path(folder), QUICK[name]) for name in (SLUICE, KCL)}
        producer = Producer(api, STREAM)
        try:
            producer.start()
            if not processes.poll(lambda: bool(producer.log()), PATIENCE):
                raise SystemExit("the emulator takes no record")
            for side in sides.values():
                side.start()
            yield Meeting(stream, producer, sides)
        finally:
            producer.stop()
            for side in sides.values():
                side.stop()


def catch_up(name: str, dynamodb: str) -> Figures:
    """Records a second from the first unit to the last, seconds from the program's start to the last, and the account."""
    shape, total = Shape(BACKLOG, SIZE, round(time.time() * 1000) - OLD_MILLIS), SHARDS * BACKLOG
    with kinesis(Options(SHARDS, shape, (JSON, CBOR), limits=True)) as endpoint, tempfile.TemporaryDirectory() as folder:
        side = compare_sides.made(name, Services(endpoint, dynamodb, STREAM), Path(folder), CATCHING_UP[name])
        try:
            begun = time.time()
            side.start(quick=True)
            side.wait(lambda: sum(len(each) for unit in side.units() for each in unit.records.values()) >= total, PATIENCE, "its backlog")
        finally:
            side.stop()
        units = sorted(side.units(), key=lambda unit: unit.at)
    put = {(f"shardId-{shard:012d}", FIRST_SEQUENCE + i * SEQUENCE_STEP): 0.0 for shard in range(SHARDS) for i in range(BACKLOG)}
    first, last = units[0], units[-1]
    counted = total - sum(map(len, first.records.values()))
    return {**compare_log.account(put, units), "speed": counted / (last.at - first.at), "all": last.at - begun}


def figures(dynamodb: str) -> dict[str, dict[str, Figures]]:
    """All scenarios; by scenario and contestant. While a killed worker of KCL waits for the lock of the one before, the others are measured."""
    both = (SLUICE, KCL)
    with meeting(dynamodb) as at:
        found = {"tip": at.tip(both, TIP), "reshard": at.reshard()}
        killed = at.kill(KCL)
        crashed = {SLUICE: at.crashed(SLUICE, at.kill(SLUICE))}
        quick = at.tip((SLUICE,), QUICK_TIP)
        at.sides[SLUICE].stop()
        caught_up = {name: catch_up(name, dynamodb) for name in both}
        crashed[KCL] = at.crashed(KCL, killed)
        quick |= at.tip((KCL,), QUICK_TIP)
        return {**found, "quick": quick, "catch-up": caught_up, "crash": crashed, "order": at.order()}
