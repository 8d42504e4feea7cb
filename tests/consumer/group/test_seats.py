"""The seats of a pool's pod, as the process in it follows them: a machine without clock, API or Spark."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice_consumer.exits.ending import Ending
from sluice_consumer.group.seats import LEAVE, REPORT, SEAT, BeginSeat, DrainSeat, SeatBook, SeatKey, SeatLimits, without_seat

POD = "pod-1"
CONFIG = {"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "table"}, "pipeline": {"entrypoint": "m:f"}}
DONE = Ending(1, "Failed", "sink is full")


def written(pod: str = POD, **more: Any) -> str:
    return json.dumps({"name": "orders", "pod": pod, "specHash": "h", "tableMade": True, "config": CONFIG} | more)


def seats(*names: str) -> dict[str, str]:
    """Annotations: a name such as "a.1" is a seat, and "-a.1" asks it to leave."""
    return {f"{LEAVE}{name[1:]}" if name[0] == "-" else f"{SEAT}{name}": "2026" if name[0] == "-" else written() for name in names}


def look(book: SeatBook, *names: str, term: bool = False) -> list[str]:
    """What is begun, as "a.1", and what is drained, as "-a.1"."""
    todo = book.changes(seats(*names), term=term)
    return [str(one.seat.key) if isinstance(one, BeginSeat) else f"-{one.key}" for one in todo]


def key(name: str) -> SeatKey:
    found = SeatKey.parse(name)
    assert found is not None
    return found


def ended(book: SeatBook) -> dict[str, tuple[int, str]]:
    return {str(one): (how.code, how.reason) for one, how in book.ended.items()}


def test_a_seat_begins_once_and_drains_once_when_it_is_asked_to_leave() -> None:
    book = SeatBook(POD)
    (begun,) = book.changes(seats("a.1"))
    assert isinstance(begun, BeginSeat)
    assert (begun.seat.config.name, begun.seat.spec_hash, begun.seat.made) == ("orders", "h", True)
    assert look(book, "a.1") == []
    assert look(book, "a.1", "-a.1") == ["-a.1"]
    assert look(book, "a.1", "-a.1") == []
    book.over(key("a.1"), DONE)
    assert look(book, "a.1", "-a.1") == []
    assert ended(book) == {"a.1": (1, "Failed")}


def test_a_run_that_ended_does_not_begin_again_and_neither_does_a_lower_attempt() -> None:
    """A former leader's write may come late, and after its annotation was removed."""
    book = SeatBook(POD)
    look(book, "a.2")
    book.over(key("a.2"), DONE)
    assert look(book, "a.2") == look(book) == look(book, "a.2") == look(book, "a.1", "a.2") == []
    assert ended(book) == {"a.1": (0, "Drained"), "a.2": (0, "Drained")}
    assert look(book, "a.3") == ["a.3"]


def test_a_seat_that_was_asked_to_leave_before_it_began_ends_at_once_for_ever() -> None:
    book = SeatBook(POD)
    assert look(book, "a.1", "-a.1") == look(book) == look(book, "a.1") == []
    assert ended(book) == {"a.1": (0, "Drained")}


def test_the_next_attempt_waits_for_the_end_of_the_former_one() -> None:
    book = SeatBook(POD)
    look(book, "a.1")
    assert look(book, "a.2", "b.1") == ["-a.1", "b.1"]
    book.over(key("a.1"), DONE)
    assert look(book, "a.2", "b.1") == ["a.2"]


def test_a_seat_of_another_pod_is_neither_begun_nor_answered() -> None:
    """A copy of a pod keeps its annotations."""
    book = SeatBook("pod-2")
    assert look(book, "a.1") == []
    assert ended(book) == {}


def test_nothing_begins_once_the_pod_was_asked_to_end() -> None:
    book = SeatBook(POD)
    look(book, "a.1", "b.1")
    assert look(book, "a.1", "b.1", "c.1", term=True) == ["-a.1", "-b.1"]
    assert ended(book) == {"c.1": (0, "Drained")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "seat.sluice.dev/a.7: is not JSON"),
        ("[]", "seat.sluice.dev/a.7: must be an object"),
        ("{}", "seat.sluice.dev/a.7: pod: must be the uid of the pod"),
        (written(name=None), "seat.sluice.dev/a.7: name: missing"),
        (written(tableMade="yes"), "seat.sluice.dev/a.7: tableMade: must be true or false"),
        (written(config=None), "seat.sluice.dev/a.7: config: missing"),
        (written(config=CONFIG | {"sparkConf": {"spark.ui.enabled": "true"}}), "sparkConf: belongs to the pool"),
        (written(config=CONFIG | {"batch": {"intervalSeconds": "often"}}), "batch.intervalSeconds: "),
        (written(config=CONFIG | {"leaseDurationSeconds": 10}), "leaseDurationSeconds: must be at least 20 in this pool, not 10"),
    ],
)
def test_a_seat_that_cannot_be_used_ends_with_a_message_that_names_the_field_and_stops_nobody_else(text: str, said: str) -> None:
    book = SeatBook(POD)
    todo = book.changes(seats("b.1") | {f"{SEAT}a.7": text})
    assert [str(one.seat.key) for one in todo if isinstance(one, BeginSeat)] == ["b.1"]
    how = book.ended[key("a.7")]
    assert (how.code, how.reason) == (65, "Refused")
    assert how.message.startswith(said)


def test_a_drain_takes_no_longer_than_that_of_the_pool() -> None:
    """The kubelet kills the pod then. What the driver reads says the same."""
    (begun,) = SeatBook(POD, SeatLimits(drain=30.0)).changes(seats("a.1"))
    assert isinstance(begun, BeginSeat)
    assert (begun.seat.config.drain_timeout_seconds, json.loads(begun.seat.text)["drainTimeoutSeconds"]) == (30.0, 30.0)


def test_a_consumer_has_the_spark_settings_of_the_pool() -> None:
    """The check of its sink looks for classes by them: a jar may come from `spark.jars.packages`, or a file system be another class."""
    conf = {"spark.jars.packages": "a:b:1"}
    (begun,) = SeatBook(POD, SeatLimits(spark_conf=conf)).changes(seats("a.1"))
    assert isinstance(begun, BeginSeat)
    assert (begun.seat.config.spark_conf, json.loads(begun.seat.text)["sparkConf"]) == (conf, conf)


def test_reports_of_seats_that_are_gone_are_removed_once_their_runs_have_ended() -> None:
    """The operator sweeps seats with all that belongs to them; a report that comes after that would stay for ever."""
    notes = seats("a.1") | {f"{REPORT}{name}": "{}" for name in ("a.1", "b.1", "c.1")}
    assert without_seat(notes, {key("b.1"): True}) == [f"{REPORT}c.1"]


NAMES = st.sampled_from([f"{consumer}.{attempt}" for consumer in "ab" for attempt in (1, 2, 3)])


class Pod(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.book, self.notes, self.term = SeatBook(POD), dict[str, str](), False
        self.begun, self.drained = list[SeatKey](), set[SeatKey]()

    @rule(name=NAMES, text=st.sampled_from([written(), written("another"), "{", written(config={})]))
    def put(self, name: str, text: str) -> None:
        self.notes[f"{SEAT}{name}"] = text

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        self.notes[f"{LEAVE}{name}"] = "2026"

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        for kind in (SEAT, LEAVE):
            self.notes.pop(f"{kind}{name}", None)

    @rule()
    def asked_to_end(self) -> None:
        self.term = True

    @precondition(lambda self: self.book.running)
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        self.book.over(data.draw(st.sampled_from(sorted(self.book.running))), DONE)

    @rule()
    def looks(self) -> None:
        before = set(self.book.running)
        for one in self.book.changes(self.notes, term=self.term):
            if isinstance(one, DrainSeat):
                assert one.key in before
                assert one.key not in self.drained
                assert self.term or f"{SEAT}{one.key}" not in self.notes or f"{LEAVE}{one.key}" in self.notes
                self.drained.add(one.key)
                continue
            found = one.seat.key
            assert not self.term
            assert f"{LEAVE}{found}" not in self.notes
            assert self.notes[f"{SEAT}{found}"] == written()
            assert all(other.attempt < found.attempt for other in self.begun if other.consumer == found.consumer)
            self.begun.append(found)
        self.answered()

    def answered(self) -> None:
        """Each seat in this pod runs, has an end, or waits for the end of its consumer's run."""
        busy = {key.consumer for key in self.book.running}
        for name, text in self.notes.items():
            if name.startswith(SEAT) and text != written("another"):
                found = key(name.removeprefix(SEAT))
                assert found in self.book.running or found in self.book.ended or found.consumer in busy

    @invariant()
    def one_run_of_a_consumer(self) -> None:
        consumers = [key.consumer for key in self.book.running]
        assert len(consumers) == len(set(consumers))
        assert not self.book.running.keys() & self.book.ended.keys()


TestPod = Pod.TestCase
TestPod.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_a_seat_of_any_depth_ends_no_other() -> None:
    """Reading may recurse as deep as it can, where writing cannot any more."""
    for depth in range(900, 1000):
        book = SeatBook(POD)
        deep = written()[:-2] + ', "pipeline": {"entrypoint": "m:f", "args": {"x": ' + "[" * depth + "]" * depth + "}}}}"
        todo = book.changes({f"{SEAT}a.1": deep, **seats("b.1")})
        assert "b" in {one.seat.key.consumer for one in todo if isinstance(one, BeginSeat)}
