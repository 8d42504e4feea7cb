"""The supervisor of a pool's pod: annotations in, leases and reports out. A driver that answers at once; tables, pod and clock in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer.exits.ending import Ending
from sluice_consumer.group import pool_program
from sluice_consumer.group.messages import Begin, Doing, Drain, Executors, Leave, Message, Over
from sluice_consumer.group.pool_program import WORDS, PoolSeats
from sluice_consumer.group.program import DriverPipe, GroupSupervisor
from sluice_consumer.group.seats import SeatBook
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.process.pod import POLL_SECONDS, REPORT, REPORT_SECONDS, TABLE_MADE, TARGET
from sluice_lab.fakes.table import MemoryTable

POD = "pod-1"
CONFIG = {"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "table"}, "pipeline": {"entrypoint": "m:f"}}


@dataclass
class Pod:
    """Annotations; `broken`: the API server does not answer."""

    notes: dict[str, str] = field(default_factory=dict)
    patches: list[Mapping[str, str | None]] = field(default_factory=list)
    broken: bool = False

    def read(self) -> dict[str, str]:
        if self.broken:
            raise ConnectionError
        return dict(self.notes)

    def write(self, annotations: Mapping[str, str | None]) -> None:
        if self.broken:
            raise ConnectionError
        self.patches.append(annotations)
        self.notes = {name: value for name, value in (self.notes | dict(annotations)).items() if value is not None}

    def seat(self, name: str, **more: Any) -> None:
        """The operator writes a seat of the consumer whose uid, name and table are the same."""
        uid, table = name.partition(".")[0], {"checkpoints": {"table": f"table-{name.partition('.')[0]}"}}
        self.notes[f"seat.sluice.dev/{name}"] = json.dumps({"name": uid, "pod": POD, "specHash": "h", "config": CONFIG | table} | more)

    def said(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.notes.get(f"report.sluice.dev/{name}", "{}"))
        return found


class Driver:
    """The driver process, as the supervisor sees it. It drains at once; `fail` ends a run. Implements `DriverLink`."""

    def __init__(self) -> None:
        self.sent, self.ending, self.group = list[Message](), cast("Ending | None", None), cast("GroupSupervisor", None)
        self.child = SimpleNamespace(returncode=-9, gave_its_word=lambda: False, wait=lambda _seconds: 0, pid=2**22 + 1)
        self.gone, self.reads = False, True

    def send(self, message: Message) -> bool:
        self.sent.append(message)
        if isinstance(message, Drain):
            self.say(message.name, Over(message.name, message.generation, 0, "Drained", "3 records", quiet=True))
        return True

    def kill(self, _why: Ending) -> None:
        self.gone = True

    def say(self, name: str, message: Doing | Over) -> None:
        self.group.leases[name].hear(message)

    def fail(self, name: str, words: str) -> None:
        self.say(name, Over(name, 1, 1, "ValueError", words, quiet=True))

    @property
    def begun(self) -> list[str]:
        return [f"{one.name} {one.spec_hash}" for one in self.sent if isinstance(one, Begin)]


class Group(GroupSupervisor):
    def __init__(self, driver: Driver) -> None:
        reading, writing = pool_program.os.pipe()
        pool_program.os.close(writing)
        super().__init__(cast("DriverPipe", driver), reading)
        driver.group = self


class Scene:
    def __init__(self, folder: Path) -> None:
        self.pod, self.driver, self.now = Pod(), Driver(), 0.0
        self.seats = PoolSeats(SeatBook(POD), Group(self.driver), self.pod, folder, clock=lambda: self.now)

    def at(self, seconds: float) -> Scene:
        self.now += seconds
        self.seats.step()
        return self

    def until(self, name: str, what: str) -> dict[str, Any]:
        """Looks until the report of a seat has something; threads of leases work meanwhile."""
        for _ in range(600):
            if what in self.at(REPORT_SECONDS).pod.said(name):
                return self.pod.said(name)
            self.seats.group.wait(0.02)
        pytest.fail(f"{name} has no {what}: {self.pod.notes}")

    def begun(self, *names: str) -> None:
        for _ in range(600):
            if sorted(self.driver.begun) == sorted(f"{name} h" for name in names):
                return
            self.at(POLL_SECONDS).seats.group.wait(0.02)
        pytest.fail(f"{self.driver.begun}: {self.pod.notes}")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Each consumer has a table in memory. The checks find nothing."""
    stores: dict[str, CheckpointStore] = {}

    def store(config: Any, **_: Any) -> CheckpointStore:
        if config.checkpoints.table not in stores:
            stores[config.checkpoints.table] = CheckpointStore(MemoryTable())
            stores[config.checkpoints.table].create_consumer(ConsumerRow("id", "arn", 1))
        return stores[config.checkpoints.table]

    monkeypatch.setattr(supervisor, "open_table", store)
    monkeypatch.setattr(wiring, "beating_store", store)
    monkeypatch.setattr(pool_program.checks, "before_start", lambda *_, **__: None)
    return Scene(tmp_path)


def test_a_seat_begins_drains_and_ends_while_others_run(scene: Scene) -> None:
    scene.pod.seat("a.1")
    scene.pod.seat("b.1")
    scene.begun("a.1", "b.1")
    (scene.seats.folder / "a.1").write_text('{"number": 0, "phase": "Running", "batch": 7}')
    scene.pod.notes["leave.sluice.dev/a.1"] = "2026"
    said = scene.until("a.1", "exit")
    assert (said["phase"], said["batch"], said["exit"]["code"], said["exit"]["reason"]) == ("Running", 7, 0, "Drained")
    assert "began" in said
    assert "exit" not in scene.pod.said("b.1")
    assert sorted(path.name for path in scene.seats.folder.iterdir()) == ["b.1.json"]


def test_a_run_that_fails_is_not_tried_again_and_the_next_attempt_begins_in_the_same_process(scene: Scene) -> None:
    scene.pod.seat("a.1")
    scene.begun("a.1")
    scene.driver.fail("a.1", "x" * 3000)
    said = scene.until("a.1", "exit")
    assert (said["exit"]["code"], said["exit"]["reason"], len(said["exit"]["message"])) == (1, "ValueError", WORDS)
    scene.at(60.0).at(60.0)
    scene.pod.seat("a.2")
    scene.begun("a.1", "a.2")


def test_the_ends_of_two_hundred_consumers_fit_into_one_pod() -> None:
    """A pod has 256 KiB of annotations. A patch that is refused would say of nobody how it ended."""
    ends = [pool_program._exit(Ending(1, "ValueError", "x" * 3000), 200) for _ in range(200)]
    assert sum(len(end["message"]) for end in ends) <= pool_program.ALL_WORDS


def test_a_consumer_that_is_refused_by_its_checks_ends_with_code_65(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """They know whether a driver has worked on the table before."""
    known, seen = dict[str, bool](), list[set[str]]()

    def check(path: Path, environment: Mapping[str, str], imported: set[str]) -> None:
        known[path.stem] = environment.get(TABLE_MADE) == "true"
        seen.append(imported)
        raise pool_program.Refused("no stream")

    monkeypatch.setattr(pool_program.checks, "before_start", check)
    scene.pod.seat("a.1", tableMade=True)
    scene.pod.seat("b.1")
    assert scene.until("a.1", "exit")["exit"]["code"] == scene.until("b.1", "exit")["exit"]["code"] == 65
    assert known == {"a.1": True, "b.1": False}
    assert seen[0] is seen[1], "what was imported for one is not imported for the other"


def test_an_api_server_that_does_not_answer_ends_nobody_and_hears_of_everything_later(scene: Scene) -> None:
    """No annotations are not the same as no seats."""
    scene.pod.seat("a.1")
    scene.pod.seat("b.1")
    scene.begun("a.1", "b.1")
    scene.pod.broken = True
    scene.driver.fail("a.1", "no")
    for _ in range(20):
        scene.at(POLL_SECONDS).seats.group.wait(0.01)
    assert not [one for one in scene.driver.sent if isinstance(one, Drain)]
    scene.pod.broken = False
    assert scene.until("a.1", "exit")["exit"]["code"] == 1


def test_sigterm_drains_all_consumers_though_the_api_server_does_not_answer(scene: Scene) -> None:
    scene.pod.seat("a.1")
    scene.pod.seat("b.1")
    scene.begun("a.1", "b.1")
    scene.pod.broken = True
    scene.seats.stop.set()
    scene.seats.drain()
    assert (scene.seats.run().code, scene.driver.sent[-1]) == (0, Leave())


def test_ends_are_written_before_the_process_ends(scene: Scene) -> None:
    """A seat without an end counts as one whose driver was lost."""
    scene.pod.seat("a.1")
    scene.begun("a.1")
    scene.seats.stop.set()
    scene.seats.drain()
    assert scene.seats.run().reason == "Drained"
    assert scene.pod.said("a.1")["exit"]["code"] == 0
    assert json.loads(scene.pod.notes[REPORT])["phase"] == "Draining"


def test_the_exit_message_of_a_pod_names_the_members_whose_process_was_running(scene: Scene) -> None:
    for name in ("a.1", "b.1", "c.1"):
        scene.pod.seat(name)
    scene.begun("a.1", "b.1", "c.1")
    scene.driver.say("a.1", Doing("a.1", 1, 7, "process"))
    scene.driver.say("b.1", Doing("b.1", 1, 7, "closing"))
    scene.driver.say("c.1", Doing("c.1", 1, 0, "process"))
    scene.driver.gone = True
    ending = scene.seats.run()
    assert (ending.code, ending.reason, sorted(ending.working)) == (1, "DriverExited", ["a", "c"])
    assert all(who in ending.message for who in ("a (batch 7)", "c (prepare)"))
    assert "exit" not in scene.pod.said("a.1")  # the operator takes that of the pod


def test_the_wanted_executors_are_handed_to_the_driver_once(scene: Scene) -> None:
    for count in ("2", "2", "many", "3"):
        scene.pod.notes[TARGET] = count
        scene.at(POLL_SECONDS)
    assert scene.driver.sent == [Executors(2), Executors(3)]


def test_a_seat_whose_configuration_cannot_be_written_ends_alone(scene: Scene) -> None:
    (scene.seats.folder / "a.1.json").mkdir()
    scene.pod.seat("a.1")
    scene.pod.seat("b.1")
    assert scene.until("a.1", "exit")["exit"]["code"] == 1
    scene.begun("b.1")
