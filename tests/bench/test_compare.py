"""The comparison with KCL is run by hand and takes minutes: here is asked whether it counts right, and whether its table has all that was counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import compare_log
from compare_log import Unit, Window
from compare_producer import Producer

from sluice_lab.site import bench_compare

PUT = {("a", 1): 1.0, ("a", 2): 2.0, ("a", 3): 3.0, ("b", 7): 4.0}


def unit(run: int, at: float, records: dict[str, tuple[int, ...]], *, held: bool = False) -> Unit:
    return Unit(run, 1, at, held, records)


def test_a_record_that_was_never_handed_over_is_missing_and_one_of_two_units_is_twice() -> None:
    units = [unit(0, 5.0, {"a": (1, 2)}), unit(1, 6.0, {"a": (2,), "b": (7,), "c": (1,)})]
    assert compare_log.account(PUT, units) == {"put": 4, "missing": 1, "twice": 1}


def test_a_log_is_complete_until_the_call_that_waits_for_its_reply() -> None:
    """Else records of that call are missed by nobody, and missing a moment later."""
    seen: list[tuple[float, int]] = []

    def put_records(**call: list[object]) -> dict[str, list[object]]:
        seen.append((producer.complete_until, len(producer.log())))
        if len(seen) > 1:
            producer._over.set()
        return {"Records": [{"ShardId": "a", "SequenceNumber": str(len(seen) * 100 + n)} for n, _ in enumerate(call["Records"])]}

    producer = Producer(SimpleNamespace(put_records=put_records), "bench")
    producer.run()
    (_, nothing), (until, known) = seen
    assert (nothing, known) == (0, len(producer.log()) // 2)
    assert max(at for at in list(producer.log().values())[:known]) < until <= max(producer.log().values())


def test_only_records_of_a_window_are_counted() -> None:
    assert set(Window(2.0, 4.0).of(PUT)) == {("a", 2), ("a", 3)}


def test_a_record_waits_until_it_is_handed_over_first() -> None:
    units = [unit(1, 9.0, {"a": (1, 2)}), unit(0, 5.0, {"a": (1,)})]
    assert sorted(compare_log.waits(PUT, units)) == [4.0, 7.0]


def test_a_childs_record_is_early_until_the_last_of_all_its_parents() -> None:
    parents = {"c": ("a", "b")}
    early = [unit(0, 1.0, {"a": (1,)}), unit(0, 2.0, {"c": (8,)}), unit(0, 3.0, {"b": (1,), "c": (9,)})]
    assert compare_log.before_parents(early, parents) == 1
    assert compare_log.before_parents(early[::2], parents) == 0


def test_a_record_after_a_later_one_is_out_of_order_unless_it_comes_again() -> None:
    assert compare_log.out_of_order([unit(0, 1.0, {"a": (1, 3)}), unit(0, 2.0, {"a": (2,)})]) == 1
    assert compare_log.out_of_order([unit(0, 1.0, {"a": (1, 3)}), unit(1, 2.0, {"a": (1, 3, 4)})]) == 0


def test_a_replay_is_the_same_only_if_it_has_the_very_same_records() -> None:
    killed = unit(0, 1.0, {"a": (1, 2), "b": (7,)}, held=True)
    assert compare_log.replays([killed, unit(1, 2.0, {"a": (1, 2), "b": (7,)})]) == {"killed": 2, "same": 2}
    assert compare_log.replays([killed, unit(1, 2.0, {"a": (1, 2, 3)}), unit(1, 3.0, {"b": (7,)})]) == {"killed": 2, "same": 1}


def test_notes_are_read_as_both_write_them() -> None:
    line = json.dumps({"unit": 4, "at": 1.5, "held": True, "records": {"a": ["1", "2"]}})
    assert list(compare_log.parsed(1, line + "\n")) == [Unit(1, 4, 1.5, held=True, records={"a": (1, 2)})]


def test_the_table_has_a_row_for_all_that_was_counted() -> None:
    waits = {"median": 101.0, "p90": 102.0}
    account = {"put": 2001, "missing": 3, "twice": 4}
    crash = account | {"killed": 8, "same": 7, "next": 41.0}
    sides: dict[str, Mapping[str, float]] = {
        "tip": waits,
        "quick": {"median": 103.0, "p90": 104.0},
        "catch-up": account | {"speed": 30001.0, "all": 55.0},
        "reshard": account | {"before parents": 61, "longest": 6.25},
        "crash": crash,
        "order": {"out of order": 71, "unknown": 0},
    }
    shown = bench_compare.rows({name: dict.fromkeys((bench_compare.SLUICE, bench_compare.KCL), of) for name, of in sides.items()}, "4.1.4")
    for figure in ("101, 102", "103, 104", "30,001", "55", "3, 4 (of 2,001)", "61", "6.2", "41", "7 of 8", "71"):
        assert shown.count(f"| {figure} | {figure} |") == (3 if "of 2,001" in figure else 1)
