"""The timeline of a run, and the shapes it is made of."""

import xml.etree.ElementTree as ET

from sluice_lab.nemesis import timeline
from sluice_lab.nemesis.history import ShardRead
from sluice_lab.nemesis.takeover import Sample
from sluice_lab.nemesis.timeline import Injection, Timeline
from sluice_lab.pictures import svg
from sluice_lab.scenario.account import RecordPosition

SAMPLES = [
    Sample(0.0, 1, "n-driver-1", 0, released=False, produced=0),
    Sample(1.0, 1, "n-driver-1", 1, released=False, produced=30),
    Sample(2.0, 1, "n-driver-1", 1, released=True, produced=50),
    Sample(9.0, 2, "n-driver-2", 3, released=False, produced=80),
]
READS = [
    ShardRead("n-driver-1", batch, pod, "0.0", attempt, f"shardId-00000000000{batch}", float(batch), batch + 0.5, (RecordPosition(1, 0),))
    for batch, pod, attempt in ((1, "one", 0), (2, "two", 1), (2, "one", 2))
]
TIMELINE = Timeline(
    "a <title>", [Injection("kill driver", 3.0, 3.0, "n-driver-1"), Injection("zombie", 3.1, 8.0, "one")], SAMPLES, READS, {1: 20, 2: 25, 3: 65}
)


def test_the_lag_is_what_was_put_and_is_in_no_committed_batch() -> None:
    assert timeline.lag(SAMPLES, TIMELINE.reached) == [(0.0, 0), (1.0, 10), (2.0, 30), (9.0, 15)]


def test_the_lag_grows_when_positions_went_back() -> None:
    assert timeline.lag(SAMPLES, {1: 20, 3: 5}) == [(0.0, 0), (1.0, 10), (2.0, 30), (9.0, 75)]
    assert timeline.lag(SAMPLES, {1: 20}) == [(0.0, 0), (1.0, 10), (2.0, 30), (9.0, 60)]


def words(drawn: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(drawn).iter() if element.tag.endswith(("text", "title"))]  # noqa: S314 - ours


def test_everything_that_happened_is_in_the_timeline() -> None:
    found = words(timeline.draw(TIMELINE))
    assert {"a <title>", "kill driver n-driver-1", "zombie one", "shard 1", "shard 2", "n-driver-1, generation 1", "batch 3", "again"} <= set(found)
    assert "one, batch 2, attempt 2" in found


def test_titles_that_would_lie_over_each_other_get_rows_of_their_own() -> None:
    drawn = ET.fromstring(timeline.draw(TIMELINE))  # noqa: S314
    heights = {element.text: float(element.get("y", 0)) for element in drawn.iter() if element.tag.endswith("text")}
    assert heights["zombie one"] > heights["kill driver n-driver-1"]


def test_a_reread_is_marked_once() -> None:
    assert words(timeline.draw(TIMELINE)).count("again") == 1


def test_nothing_is_too_small_to_be_seen() -> None:
    assert "width='0.8'" in svg.rect(1, 2, 0, 4, "red")


def test_colours_come_again_after_a_dozen() -> None:
    found = svg.colours(f"pod-{n}" for n in (*range(13), 0, 1))
    assert len(found) == 13
    assert found["pod-0"] == found["pod-12"] != found["pod-1"]
