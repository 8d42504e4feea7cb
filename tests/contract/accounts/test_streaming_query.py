"""A streaming query over a stream of another account: its driver and its Python workers read as the role, each with a session of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from account_programs import QueryProgram, run_through_expiries
from conftest_accounts import RECORDS, REGION, Theirs
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import AccessDenied
from sluice_consumer import streaming
from sluice_lab.aws.accounts import READ

pytestmark = pytest.mark.spark
WORKERS = "executors"  # the key of pods that are not the driver
OF_WORKERS = {"spark.executorEnv.AWS_ACCESS_KEY_ID": WORKERS}
OF_THE_DRIVER, OF_TASKS = {"DescribeStreamSummary", "ListShards"}, {"DescribeStreamSummary", "GetShardIterator", "GetRecords"}
TRUST = "the trust policy of that role needs"
POLICY = "a policy of arn:aws:iam::444455556666:role/orders-reader needs"


@pytest.mark.slow
def test_twenty_sessions_expire_in_a_query_without_a_failed_batch(theirs: Theirs, tmp_path: Path) -> None:
    program = QueryProgram(theirs, tmp_path)
    program.set(sparkConf=OF_WORKERS)
    run_through_expiries(theirs, program)
    theirs.check(WORKERS)
    made = {key: {call.action for call in theirs.calls("kinesis") if call.by == key} for key in (theirs.accounts.own_key, WORKERS)}
    assert made[theirs.accounts.own_key] >= OF_THE_DRIVER
    assert made[WORKERS] == OF_TASKS


@pytest.mark.slow
def test_workers_that_may_not_assume_the_role_end_a_query_with_the_statement_that_is_missing(theirs: Theirs, tmp_path: Path) -> None:
    """Pods have two roles, and the trust policy may lack one. `source` raises the refusal itself, though a function of foreachBatch met it."""
    theirs.role.strangers = frozenset({WORKERS})
    program = QueryProgram(theirs, tmp_path)
    program.set(sparkConf=OF_WORKERS)
    with program.running():
        refused(program, TRUST)
    assert not program.numbers


@pytest.mark.slow
def test_a_policy_that_is_removed_ends_a_query_that_is_at_the_tip_with_the_statement(theirs: Theirs, tmp_path: Path) -> None:
    program = QueryProgram(theirs, tmp_path)
    with program.running():
        program.wait("all", lambda: len(program.numbers) == RECORDS)
        theirs.role.may = READ - {"GetRecords"}
        refused(program, POLICY)
    assert program.numbers == list(range(RECORDS))


def refused(program: QueryProgram, said: str) -> None:
    last = program.ended()
    assert program.process is not None
    assert program.process.returncode == 65, "".join(program.lines)
    assert last["reason"] == "AccessDenied"
    assert said in last["message"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"external_id": "another"}, TRUST),
        ({"trusted": False}, TRUST),
        ({"may": READ - {"DescribeStreamSummary"}}, POLICY),
    ],
    ids=["external id", "trust", "policy"],
)
def test_a_source_whose_driver_may_not_read_is_refused_before_there_is_a_table(
    spark: SparkSession, theirs: Theirs, wrong: dict[str, Any], said: str
) -> None:
    for name, value in wrong.items():
        setattr(theirs.role, name, value)
    with pytest.raises(AccessDenied, match=said), streaming.source(spark, theirs.config()):
        pytest.fail("there is a source")
    tables = boto3.session.Session().client("dynamodb", endpoint_url=theirs.endpoint, region_name=REGION).list_tables()["TableNames"]
    assert f"sluice_{theirs.name}" not in tables
