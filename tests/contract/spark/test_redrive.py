"""Dead letters go through `process` again, once: real Spark, letters in a folder (docs/dead-letters.md, "Redrive")."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.errors import Refused
from sluice_checkpoints.letters import pending
from sluice_checkpoints.letters.letter import DeadLetter, order
from sluice_checkpoints.letters.pending import PendingName
from sluice_consumer import pipelines
from sluice_consumer.__main__ import main as consumer
from sluice_consumer.config import CheckpointsConfig, Config, DeadLetterConfig, OnErrorConfig, PipelineConfig, StreamConfig
from sluice_consumer.pipelines import BatchInfo
from sluice_consumer.redrive import redrive
from sluice_consumer.redrive.redrive import ConsumerLetters
from sluice_consumer.sinks.files import stores

pytestmark = pytest.mark.spark
FIRST = DeadLetter("c", "orders", "shardId-000000000000", "9", 0, 1_700_000_000_123, "k", b"one", 7, 3, "ValueError: no")
LETTERS = [FIRST, replace(FIRST, sequence="10", sub=2, data=b"two"), replace(FIRST, shard="shardId-000000000001", data=b"three")]


@dataclass
class Sink:
    """What a pipeline was given: number, replay, and payloads by batch. `error` is raised after it stored; `bad` is rejected."""

    runs: list[tuple[str, int, bool]] = field(default_factory=list)
    batches: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    error: BaseException | None = None
    bad: str = "false"

    def __call__(self, batch: DataFrame, info: BatchInfo) -> None:
        self.runs.append((info.consumer, info.batch, info.replay))
        info.reject(batch.filter(self.bad), "still bad")
        self.batches.setdefault((info.consumer, info.batch), [bytes(row.data) for row in batch.filter(f"NOT ({self.bad})").collect()])
        if self.error is not None:
            raise self.error


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sink]:
    made = Sink()
    monkeypatch.setattr(redrive, "load", lambda _entrypoint: made)
    before = dict(pipelines.LETTERS.stores)
    yield made
    pipelines.LETTERS.stores = before


@pytest.fixture
def config(tmp_path: Path) -> Config:
    for letter in LETTERS:
        file = tmp_path / letter.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(letter.to_json())
    where = OnErrorConfig(DeadLetterConfig(tmp_path.as_uri()))
    return Config(StreamConfig("orders", "us-east-1"), CheckpointsConfig("orders"), PipelineConfig("m:f"), on_error=where)


Go = Callable[..., dict[str, Any]]


@pytest.fixture
def go(spark: SparkSession, config: Config) -> Go:
    return lambda *names, how="new": redrive.redrive(spark, config, "c", names, how)


def test_all_letters_are_a_batch_of_their_own_consumer(go: Go, sink: Sink) -> None:
    assert go() == {"consumer": "c-redrive", "batch": 1, "ended": "processed", "redriven": 3, "rejected": (), "pending": 0}
    assert sink.runs == [("c-redrive", 1, False)]
    assert sink.batches == {("c-redrive", 1): [b"one", b"two", b"three"]}


def test_a_letter_that_was_redriven_is_refused_and_left_out(go: Go, sink: Sink) -> None:
    go(FIRST.path)
    with pytest.raises(Refused, match="was redriven as batch 1"):
        go(FIRST.path)
    assert go()["redriven"] == 2
    assert go() == {"redriven": 0, "pending": 0}
    assert list(sink.batches.values()) == [[b"one"], [b"two", b"three"]]


def test_a_redrive_that_died_after_its_sink_had_it_is_resumed_with_the_same_number(go: Go, sink: Sink) -> None:
    sink.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        go(FIRST.path)
    sink.error = None
    with pytest.raises(Refused, match="has not ended"):
        go()
    assert go(how="resume")["redriven"] == 1
    assert sink.runs == [("c-redrive", 1, False), ("c-redrive", 1, True)]
    assert go()["batch"] == 2


def test_a_redrive_that_failed_is_given_up_and_its_letters_stay(go: Go, sink: Sink) -> None:
    sink.error = ValueError("still no")
    with pytest.raises(ValueError, match="still no"):
        go(FIRST.path)
    assert go(how="give-up")["ended"] == "given up"
    sink.error = None
    assert (go(FIRST.path)["batch"], list(sink.batches)) == (2, [("c-redrive", 1), ("c-redrive", 2)])


def test_rows_that_process_rejects_again_stay_letters(go: Go, sink: Sink) -> None:
    sink.bad = "decode(data, 'UTF-8') = 'two'"
    assert go()["rejected"] == (LETTERS[1].path.partition("/")[2],)
    sink.bad = "false"
    assert go()["redriven"] == 1
    assert list(sink.batches.values()) == [[b"one", b"three"], [b"two"]]


def test_a_redrive_that_died_after_it_rejected_leaves_those_letters_rejected(go: Go, sink: Sink) -> None:
    """The sink may have the others: `process`, repaired meanwhile, is given the batch without them, and they are redriven next."""
    sink.bad, sink.error = "decode(data, 'UTF-8') = 'two'", KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        go()
    sink.bad, sink.error = "false", None
    assert go(how="resume")["rejected"] == (LETTERS[1].name,)
    assert go()["redriven"] == 1
    assert list(sink.batches.values()) == [[b"one", b"three"], [b"two"]]


def test_a_redrive_that_raised_has_rejected_nothing(go: Go, sink: Sink) -> None:
    sink.bad, sink.error = "decode(data, 'UTF-8') = 'two'", ValueError("the sink is down")
    with pytest.raises(ValueError, match="sink is down"):
        go()
    sink.batches.clear()
    sink.bad, sink.error = "false", None
    assert (go(how="resume")["redriven"], go()) == (3, {"redriven": 0, "pending": 0})
    assert list(sink.batches.values()) == [[b"one", b"two", b"three"]]


def hold(root: Path, *letters: DeadLetter, batch: int = 8) -> str:
    file = root / "c" / pending.FOLDER / f"{PendingName(batch, 1, 1, pending.REJECTED)}{pending.SUFFIX}"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(pending.to_text(letters))
    return str(file.as_uri())


WAITING = replace(FIRST, sequence="11", batch=8, data=b"waits")


def test_letters_of_a_batch_that_is_not_committed_are_left_out_and_counted(go: Go, sink: Sink, tmp_path: Path) -> None:
    hold(tmp_path, WAITING)
    assert (go()["redriven"], go()) == (3, {"redriven": 0, "pending": 1})
    assert list(sink.batches.values()) == [[b"one", b"two", b"three"]]


def test_a_pending_letter_is_refused_by_name(go: Go, sink: Sink, tmp_path: Path) -> None:
    hold(tmp_path, WAITING)
    with pytest.raises(Refused, match=r"11-0\.json: is pending: batch 8 is not known to be committed"):
        go(WAITING.path)
    assert sink.runs == []


def test_letters_that_a_commit_named_are_published_by_a_redrive(spark: SparkSession, config: Config, tmp_path: Path) -> None:
    entry = hold(tmp_path, WAITING)
    letters = ConsumerLetters(stores.hadoop_store(spark, str(tmp_path)), config.on_error.dead_letter.path, "c")  # type: ignore[union-attr,arg-type]  # set above
    letters.publish([entry, "s3a://elsewhere/c/pending/x.pending"])
    assert letters.letter(WAITING.name) == WAITING


def test_records_of_one_aggregate_are_redriven_in_their_order_over_several_batches(go: Go, sink: Sink, tmp_path: Path) -> None:
    """By numbers, not by names: `…-10.json` is after `…-2.json`."""
    for letter in [replace(FIRST, sequence=sequence, sub=sub, data=f"{sequence}/{sub}".encode()) for sequence in ("9", "100") for sub in (2, 10, 1)]:
        (tmp_path / letter.path).write_text(letter.to_json())
    monkeypatched = pytest.MonkeyPatch()
    with monkeypatched.context() as patch:
        patch.setattr(redrive, "MOST", 3)
        while go()["redriven"]:
            pass
    told = [data.decode() for batch in sink.batches.values() for data in batch]
    assert [data for data in told if "/" in data] == ["9/1", "9/2", "9/10", "100/1", "100/2", "100/10"]


def test_names_are_sorted_as_their_records_are() -> None:
    """Sequence numbers have up to 129 digits; what is no letter comes first."""
    names = [f"c/shardId-1/{sequence}-{sub}.json" for sequence in ("9", "10", "1" * 129) for sub in (2, 10)]
    assert sorted([*reversed(names), "c/shardId-1/x.json"], key=order) == ["c/shardId-1/x.json", *names]


@pytest.mark.parametrize("how", ["resume", "give-up"])
def test_nothing_is_resumed_that_is_not_open(go: Go, sink: Sink, how: str) -> None:  # noqa: ARG001 - replaces the pipeline
    with pytest.raises(Refused, match="no redrive of c is open"):
        go(how=how)


@pytest.mark.parametrize("name", ["c/shardId-000000000000/11-0.json", "../other/secret.json"])
def test_a_letter_that_is_not_there_is_refused_before_anything_begins(go: Go, sink: Sink, name: str) -> None:
    with pytest.raises(Refused, match="there is no such dead letter"):
        go(name)
    assert sink.runs == []
    assert go()["batch"] == 1


def test_two_that_begin_at_the_same_time_do_not_both(go: Go, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    real = ConsumerLetters.begin

    def late(self: ConsumerLetters, one: Any) -> None:
        monkeypatch.setattr(ConsumerLetters, "begin", real)
        go()
        real(self, one)

    monkeypatch.setattr(ConsumerLetters, "begin", late)
    with pytest.raises(Refused, match="begun at the same time"):
        go()
    assert len(sink.runs) == 1


@pytest.mark.slow
def test_the_command_redrives_and_lists(config: Config, tmp_path: Path) -> None:
    (tmp_path / "sink").mkdir()
    document = {
        "stream": {"name": "orders", "region": "us-east-1"},
        "checkpoints": {"table": "orders"},
        "pipeline": {"entrypoint": "sluice_consumer.sinks:parquet", "args": {"path": (tmp_path / "sink").as_uri()}},
        "onError": {"deadLetter": {"path": config.on_error.dead_letter.path}},  # type: ignore[union-attr]  # set above
    }
    file = tmp_path / "consumer.json"
    file.write_text(json.dumps(document))
    done = CliRunner().invoke(consumer, ["redrive", "--config", str(file), "--consumer", "c"])
    assert done.exit_code == 0, done.output
    assert "batch 1 of c-redrive is processed: 3 letters redriven" in done.output
    assert list((tmp_path / "sink" / "c-redrive").rglob("*.parquet"))
    listed = CliRunner().invoke(main, ["dead-letters", "list", "--path", str(tmp_path), "--json"])
    assert [letter["redriven"] for letter in json.loads(listed.stdout)["letters"]] == [1, 1, 1]
    again = CliRunner().invoke(consumer, ["redrive", "--config", str(file), "--consumer", "c", FIRST.path])
    assert again.exit_code == 65
