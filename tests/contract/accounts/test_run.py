"""A consumer of another account's stream, as its program and with Spark: sessions expire, are denied, and begin in the warm-up."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import boto3
import pytest
from account_programs import Program, run_through_expiries
from conftest_accounts import RECORDS, REGION, Theirs

from sluice_checkpoints.position import TRIM_HORIZON
from sluice_consumer.checks import run
from sluice_consumer.checks.model import CheckOutcome, StartFacts
from sluice_consumer.config import StreamConfig
from sluice_consumer.kinesis.http import connect
from sluice_consumer.spark import warmup_source
from sluice_consumer.spark.warmup_source import WarmUpReader
from sluice_lab.aws.accounts import READ

PAUSE = threading.Event()  # never set


def consumer_row(theirs: Theirs) -> dict[str, Any]:
    api = boto3.session.Session().client("dynamodb", endpoint_url=theirs.endpoint, region_name=REGION)  # of the keys that are set now
    found: dict[str, Any] = api.get_item(TableName=f"sluice_{theirs.name}", Key={"id": {"S": "consumer"}})["Item"]
    return found


@pytest.mark.spark
@pytest.mark.slow
def test_twenty_sessions_expire_in_a_run_without_a_failed_batch(theirs: Theirs, tmp_path: Path) -> None:
    run_through_expiries(theirs, Program(theirs, tmp_path))
    assert consumer_row(theirs)["streamArn"] == {"S": theirs.arn}
    theirs.check()


@pytest.mark.spark
@pytest.mark.slow
def test_a_trust_that_is_removed_in_a_run_ends_it_with_words_and_nothing_is_lost(theirs: Theirs, tmp_path: Path) -> None:
    theirs.accounts.seconds = 3.0
    program = Program(theirs, tmp_path)
    with program.running():
        program.wait("the first batch", lambda: len(program.numbers) == RECORDS)
        theirs.role.trusted = False
        last = program.ended()
    assert program.process is not None
    assert program.process.returncode == 65, "".join(program.lines)
    assert "the trust policy of that role needs" in last["message"]
    assert not [line for line in program.lines if "botocore" in line], "a renewal that fails is a line of ours, without a trace"
    theirs.put(range(RECORDS, RECORDS + 5))
    theirs.role.trusted = True
    with program.running():
        program.wait("the rest", lambda: len(program.numbers) >= RECORDS + 5)
    assert program.numbers == list(range(RECORDS + 5))
    theirs.check()


@pytest.mark.spark
@pytest.mark.slow
def test_executors_that_may_not_assume_the_role_end_the_run_as_a_driver_that_may_not(theirs: Theirs, tmp_path: Path) -> None:
    """Pods have two roles, and the trust policy may lack one. Nothing is wrong with a record, so none is put aside."""
    theirs.role.strangers = frozenset({"executors"})
    of_workers = {"spark.executorEnv.AWS_ACCESS_KEY_ID": "executors"}
    letters = {"attempts": 1, "deadLetter": {"path": f"file://{tmp_path}/letters"}}
    program = Program(theirs, tmp_path)
    program.set(sparkConf=of_workers, onError=letters)
    with program.running():
        last = program.ended()
    assert program.process is not None
    assert program.process.returncode == 65, "".join(program.lines)
    assert last["reason"] == "AccessDenied"
    assert "the trust policy of that role needs" in last["message"]
    assert not (tmp_path / "letters").exists()


def test_a_python_worker_begins_its_session_when_it_warms_up(theirs: Theirs) -> None:
    """Else the first batch of each executor would wait for STS; no call to Kinesis is made for it."""
    reader = WarmUpReader(1, StreamConfig(**json.loads(warmup_source.options(theirs.config().stream)[warmup_source.STREAM])))
    (partition,) = reader.partitions()
    assert sum(rows.num_rows for rows in reader.read(partition)) == 1
    assert [call.status for call in theirs.calls("sts")] == [200]
    assert not theirs.calls("kinesis")
    connect(theirs.address).get_iterator("shardId-000000000000", TRIM_HORIZON)
    assert len(theirs.calls("sts")) == 1, "the batch has the session of the warm-up"


def test_a_warm_up_without_a_session_is_one_all_the_same(theirs: Theirs) -> None:
    theirs.role.trusted = False
    reader = WarmUpReader(1, theirs.config().stream)
    assert sum(rows.num_rows for rows in reader.read(reader.partitions()[0])) == 1


def checked(theirs: Theirs, folder: Path) -> tuple[str, CheckOutcome, str]:
    path = folder / "consumer.json"
    path.write_text(json.dumps(theirs.document()))
    results = {result.name: result for result in run.results(StartFacts(path, 60.0))}
    found = next((result for result in results.values() if result.finding.outcome.stops), results["credentials"])
    return found.name, found.finding.outcome, found.finding.message


def test_the_check_of_credentials_begins_a_session(theirs: Theirs, tmp_path: Path) -> None:
    """It names the role, so that a person sees as whom the stream is read."""
    name, outcome, said = checked(theirs, tmp_path)
    assert (name, outcome) == ("credentials", CheckOutcome.OK)
    assert said.endswith(f"; session sluice-orders of {theirs.role.arn}")
    theirs.check()


def test_the_check_of_credentials_fails_by_the_field_if_the_role_does_not_trust_us(theirs: Theirs, tmp_path: Path) -> None:
    theirs.role.trusted = False
    name, outcome, said = checked(theirs, tmp_path)
    assert (name, outcome) == ("credentials", CheckOutcome.FAILED)
    assert said.startswith(f"stream.roleArn: AssumeRole of {theirs.role.arn} was denied to arn:aws:sts::")
    assert '"Condition": {"StringEquals": {"sts:ExternalId": "shop-orders"}}' in said


def test_the_check_of_the_stream_fails_if_the_role_may_list_and_not_read(theirs: Theirs, tmp_path: Path) -> None:
    """Without it the first batch would fail, with a table made and a lease held."""
    theirs.role.may = READ - {"GetRecords"}
    name, outcome, said = checked(theirs, tmp_path)
    assert (name, outcome) == ("stream", CheckOutcome.FAILED)
    assert said.startswith(f"GetRecords of stream {theirs.name}: Kinesis refuses the call: AccessDeniedException")
    assert f"a policy of {theirs.role.arn} needs" in said
