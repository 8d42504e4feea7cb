"""The command line of `diagnose` over in-memory fakes: what is read, what is said, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import Result
from diagnosing import TABLE, Scene, kinds, lease

from sluice_checkpoints.cli import diagnose
from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.formats import kcl, nifi
from sluice_checkpoints.formats.snapshot import TableKey
from sluice_checkpoints.stream.address import StreamAddress


def test_a_table_in_order_ends_with_0(call: Callable[..., Result]) -> None:
    result = call()
    assert result.exit_code == 0
    assert result.stdout.split() == f"{TABLE} (kcl, 2 rows of shards, 2 shards in the stream): no loss was found".split()


def test_warnings_alone_end_with_0(call: Callable[..., Result], scene: Scene) -> None:
    scene.rows[0]["pendingCheckpoint"] = {"S": "7"}
    scene.rows.append({"leaseKey": {"S": "who-knows"}, "mark": {"S": "x"}})
    result = call("--json")
    assert result.exit_code == 0
    assert kinds(result) == {"left-behind": "WARNING", "unreadable": "WARNING"}


def test_a_loss_ends_with_1_and_a_document(call: Callable[..., Result], scene: Scene) -> None:
    scene.rows[0]["checkpoint"] = {"S": "LATEST"}
    result = call("--json")
    document = json.loads(result.stdout)
    (finding,) = document.pop("findings")
    counts = {"LOST": 0, "WILL_BE_LOST": 1, "SUSPECTED": 0, "WARNING": 0, "INFO": 0}
    assert result.exit_code == 1
    assert document == {"table": TABLE, "format": "kcl", "rows": 2, "shards": 2, "loss": True, "suspected": False, "counts": counts}
    assert finding.keys() == {"kind", "severity", "shard", "text", "advice"}
    assert (finding["kind"], finding["severity"], finding["shard"]) == ("never-acknowledged", "WILL_BE_LOST", scene.a)


def test_one_fault_does_not_hide_another(call: Callable[..., Result], scene: Scene) -> None:
    """A migration would stop at the first of these."""
    scene.stream.split(scene.a)
    scene.rows[0] |= {"checkpoint": {"S": "1"}, "checkpointOwner": {"S": "w2"}}
    scene.rows[1] |= {"checkpoint": {"S": "LATEST"}}
    scene.rows.append(lease("shardId-000000000009", "77"))
    scene.rows.append(lease("shardId-000000000008", "SOMEWHERE"))
    result = call("--json")
    assert result.exit_code == 1
    assert kinds(result) == {
        "expired": "LOST",
        "behind-retention": "SUSPECTED",
        "other-stream": "WILL_BE_LOST",
        "never-acknowledged": "WILL_BE_LOST",
        "left-behind": "WARNING",
        "unreadable": "SUSPECTED",
    }


def test_people_see_what_is_wrong_and_what_to_do(call: Callable[..., Result], scene: Scene) -> None:
    scene.stream.trim(scene.a, 2)
    scene.rows[1]["checkpoint"] = {"S": "LATEST"}
    text = call().stdout
    assert "records are or will be lost · 1 will be lost · 1 suspected" in text
    assert text.index("says LATEST") < text.index("--unstarted trim-horizon") < text.index("suspected: is at")
    assert scene.places[0] not in text  # both ends of a sequence number will do


def test_retention_that_passed_a_checkpoint_is_seen_in_the_stream(call: Callable[..., Result], scene: Scene) -> None:
    """The third record is the oldest, and the second was the last one read: it may be all, or not."""
    scene.stream.trim(scene.a, 2)
    result = call("--json")
    assert (result.exit_code, kinds(result)) == (0, {"behind-retention": "SUSPECTED"})
    assert scene.records.asked == [scene.a, scene.b]


def test_a_shard_whose_only_row_cannot_be_read_is_not_said_to_be_in_order(call: Callable[..., Result], scene: Scene) -> None:
    scene.rows[0]["checkpoint"] = {"S": "12ab"}
    result = call("--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, kinds(result), document["loss"], document["suspected"]) == (0, {"unreadable": "SUSPECTED"}, False, True)
    assert "losses are suspected" in call().stdout


def test_records_need_not_be_asked_for(call: Callable[..., Result], scene: Scene) -> None:
    """Where nobody may read them, or a consumer needs every call. Kinesis is not asked about positions either."""
    scene.stream.trim(scene.a, 2)
    scene.rows[1]["checkpoint"] = {"S": str(int(scene.places[1]) + 10**45)}
    result = call("--no-records")
    assert result.exit_code == 0
    assert not scene.records.asked


def test_only_shards_with_a_place_in_the_stream_are_asked_about(call: Callable[..., Result], scene: Scene) -> None:
    scene.stream.split(scene.a)
    scene.rows[0]["checkpoint"] = {"S": "SHARD_END"}
    scene.rows[1]["checkpoint"] = {"S": "TRIM_HORIZON"}
    scene.rows.append(lease("shardId-000000000009", "77"))
    call()
    assert scene.records.asked == []


def test_leases_of_an_earlier_epoch_are_seen(call: Callable[..., Result], scene: Scene) -> None:
    """In a table of several streams the row itself says it; the shards they are about are no holes beside."""
    scene.holds(kcl.KEY, *(lease(f"000000000000:orders:1:{shard}", "5", streamName={"S": "x"}, shardId={"S": shard}) for shard in (scene.a, scene.b)))
    result = call("--json")
    assert (result.exit_code, kinds(result)) == (1, {"other-stream": "WILL_BE_LOST"})
    assert len(json.loads(result.stdout)["findings"]) == 2


@pytest.mark.parametrize(
    ("initial", "code", "severity"),
    [([], 1, "WILL_BE_LOST"), (["--initial-position", "trim-horizon"], 0, "INFO"), (["--initial-position", "latest"], 1, "WILL_BE_LOST")],
)
def test_what_the_table_does_not_say_the_user_may(call: Callable[..., Result], scene: Scene, initial: list[str], code: int, severity: str) -> None:
    del scene.rows[1]
    result = call("--json", *initial)
    assert (result.exit_code, kinds(result)) == (code, {"hole": severity})


def test_many_findings_of_a_kind_are_counted(call: Callable[..., Result], scene: Scene) -> None:
    scene.rows.extend({"leaseKey": {"S": f"who-{i:02}"}} for i in range(25))
    assert "unreadable: 5 more" in call().stdout
    assert json.loads(call("--json").stdout)["counts"]["WARNING"] == 25


def test_shards_of_which_the_same_is_said_share_a_row(call: Callable[..., Result], scene: Scene) -> None:
    scene.rows[:] = [lease(i, "LATEST") for i in (scene.a, scene.b)]
    scene.holds(nifi.KEY, table=TABLE + "_migration")
    scene.stream._next_shard = 100
    scene.stream._open((), 0, 0)  # so shard 99 is one that has expired, and not of another stream
    scene.rows.append(lease("shardId-000000000099", "5"))
    text = call().stdout
    assert (text.count("says LATEST"), text.count(scene.a), text.count(scene.b)) == (1, 1, 1)
    assert text.index("the table ") < text.index("says LATEST")


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda s: s.rows[0].update(startingHashKey={"S": "1"}), "startingHashKey 1, not 0"),
        (lambda s: s.rows[0].update(childShardIds={"SS": ["shardId-000000000009"]}), "names the child shardId-000000000009"),
        (lambda s: s.rows[0].update(checkpoint={"S": str(int(s.places[0]) + 10**45)}), "checkpoint 4960000000100000000"),
    ],
)
def test_what_no_table_of_this_stream_can_hold_is_a_loss(
    call: Callable[..., Result], scene: Scene, spoil: Callable[[Scene], object], word: str
) -> None:
    spoil(scene)
    result = call("--json")
    assert result.exit_code == 1
    assert [f["text"] for f in json.loads(result.stdout)["findings"] if f["kind"] == "other-stream" and word in f["text"]]


@pytest.mark.parametrize(
    ("spoil", "arguments", "named"),
    [
        (lambda s: s.sources.tables.clear(), [], TABLE),
        (lambda s: s.holds((TableKey("pk", "HASH", "S"),)), [], "pk HASH S"),
        (lambda _: None, ["--format", "nifi"], "format nifi was named"),
        (lambda s: setattr(s.stream, "exists", False), [], "stream orders does not exist"),
    ],
)
def test_what_cannot_be_read_ends_with_65(
    call: Callable[..., Result], scene: Scene, spoil: Callable[[Any], None], arguments: list[str], named: str
) -> None:
    spoil(scene)
    result = call("--json", *arguments)
    assert result.exit_code == 65
    assert named in json.loads(result.stdout)["message"]


def test_a_service_that_does_not_answer_is_no_finding(call: Callable[..., Result], scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with 1 too; the document's reason tells the two apart."""

    def silent(*_: Any) -> Any:
        raise ServiceUnavailable("no answer")

    monkeypatch.setattr(scene.sources, "scan", silent)
    result = call("--json")
    assert (result.exit_code, json.loads(result.stdout)["reason"]) == (1, "ServiceUnavailable")


def test_the_ports_are_made_without_a_call() -> None:
    stream = StreamAddress("s", "us-east-1", "http://127.0.0.1:9")
    options = diagnose.DiagnoseOptions("t", stream, "us-east-1", "auto", None, records=True, dynamodb_endpoint=None)
    assert diagnose._sight(options).records is not None
    assert diagnose._sight(replace(options, records=False)).records is None
