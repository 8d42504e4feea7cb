"""`python -m sluice_consumer`, as a process: `--check`, and a start that is refused before anything is made."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

import boto3
import page_blocks
import pytest
import yaml
from conftest_checks import REGION, Checked

from sluice_consumer.config import configuration
from sluice_consumer.process import wiring

SURE = ("--check", "--check-seconds", "60")  # this machine may be busy


def test_a_check_that_finds_nothing_ends_with_0(consumer: Checked, tables: Callable[[], set[str]]) -> None:
    consumer.written["pipeline"]["entrypoint"] = "user_pipeline:process"
    before = tables()
    done = consumer.program(*SURE)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^│ (\w+) +│ ([\w ]+?) +│", done.stdout, re.MULTILINE)
    assert rows == [(name, "ok") for name in ("config", "entrypoint", "java", "credentials", "stream", "table", "sink")]
    assert done.stderr == ""
    assert consumer.last_words == {"reason": "Checked", "message": "a consumer can start"}
    assert tables() == before


def test_the_check_of_the_page_for_the_awslabs_connector(consumer: Checked) -> None:
    """Its dry run (docs/migrate/awslabs.md), word by word, with a start at a time as its manifest has it."""
    consumer.written["start"] = yaml.safe_load(page_blocks.beginning("docs/migrate/awslabs.md", "apiVersion:"))["spec"]["start"]
    line = page_blocks.beginning("docs/migrate/awslabs.md", "sluice run").strip()
    done = consumer.typed(f"{line} {shlex.join(SURE[1:])}")
    assert done.returncode == 0, done.stdout + done.stderr


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "config": ({"colour": 1}, "colour: unknown setting"),
    "entrypoint": ({"pipeline.entrypoint": "user_pipeline:proces"}, "pipeline.entrypoint: module user_pipeline has no proces"),
    "stream": ({"stream.name": "nothing-such"}, "stream nothing-such does not exist in us-east-1"),
    "a class": (
        {"pipeline": {"entrypoint": "sluice_consumer.sinks:parquet", "args": {"path": "s3a://x"}}, "sparkConf": {"spark.hadoop.fs.s3a.impl": "x.Y"}},
        "pipeline.args.path: s3a://x: x.Y is not on Spark's class path; use an image with its jar (docs/images.md), or add it",
    ),
}


def changed(consumer: Checked, changes: dict[str, object]) -> None:
    for key, value in changes.items():
        *outer, last = key.split(".")
        target = consumer.written
        for name in outer:
            target = target[name]
        target[last] = value


@pytest.mark.parametrize(("changes", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_check_that_fails_ends_with_65_and_says_one_thing(consumer: Checked, changes: dict[str, object], said: str) -> None:
    changed(consumer, changes)
    done = consumer.program(*SURE, "--json")
    assert done.returncode == 65, done.stdout + done.stderr
    document = json.loads(done.stdout)
    outcomes = [each["outcome"] for each in document["checks"]]
    at = outcomes.index("failed")
    assert not document["ok"]
    assert outcomes == [*["ok"] * at, "failed", *["not reached"] * (6 - at)]
    message = document["checks"][at]["message"]
    assert message.startswith(said)
    assert "\n" not in message
    assert consumer.last_words["message"] == message


JVM = re.compile(r"Picked up JAVA_TOOL_OPTIONS|WARNING: Using incubator modules|\d\d/\d\d/\d\d .* (WARN|INFO) ")


def said_by_us(stderr: str) -> list[str]:
    """Without the lines of the JVM, which boots beside: how soon it says something is not ours."""
    return [line for line in stderr.splitlines() if not JVM.match(line)]


@pytest.mark.parametrize("name", WRONG)
def test_a_start_that_is_refused_leaves_nothing_behind(consumer: Checked, tables: Callable[[], set[str]], name: str) -> None:
    changes, said = WRONG[name]
    changed(consumer, changes)
    before = tables()
    done = consumer.program("--until", "tip", "--master", "local[1]", *SURE[1:])
    assert done.returncode == 65, done.stderr
    assert consumer.last_words["message"].startswith(said)
    assert len(said_by_us(done.stderr)) <= 3, done.stderr
    assert "Spark" not in done.stderr.replace("Spark's class path", "")
    assert tables() == before


@pytest.mark.slow
def test_a_start_says_at_once_that_nobody_answers_and_that_it_goes_on(consumer: Checked) -> None:
    consumer.written["stream"]["kinesisEndpoint"] = "http://127.0.0.1:1"
    done = consumer.program("--until", "tip", "--master", "local[1]")
    lines = [line.partition(" ")[2] for line in said_by_us(done.stderr)]
    assert lines[0] == "stream: no answer from http://127.0.0.1:1/: [Errno 111] Connection refused; check stream.kinesisEndpoint; it is tried again"
    progress = [line for line in lines if re.match(r"DescribeStreamSummary of stream .*: no success in \d+ tries over \d+ s, of 60 s: ", line)]
    assert 3 <= len(progress) <= 8, lines
    assert (done.returncode, consumer.last_words["reason"]) == (1, "ServiceUnavailable")


REFUSING = """
from sluice_checkpoints.errors import Refused
def early(batch, info): ...
def no_table(*_): raise Refused("pipeline.args.table: there is no such table")
early.prepare = no_table
def late(batch, info):
    batch.count()
    no_table()
"""


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("function", ["early", "late"])
def test_a_refusal_after_the_lease_was_taken_releases_it(consumer: Checked, function: str) -> None:
    (consumer.folder / "user_refusing.py").write_text(REFUSING)
    consumer.written["pipeline"]["entrypoint"] = f"user_refusing:{function}"
    done = consumer.program("--until", "tip", "--master", "local[1]")
    assert (done.returncode, consumer.last_words["message"]) == (65, "pipeline.args.table: there is no such table"), done.stderr
    row = wiring.store(configuration(consumer.path)).consumer()
    assert row is not None
    assert (row.generation, row.released, row.committed) == (1, True, 0)
    consumer.written["pipeline"]["entrypoint"] = "sluice_consumer.pipelines:console"
    assert consumer.results()["table"].message.endswith("lease free")


def test_json_needs_a_check(consumer: Checked) -> None:
    done = consumer.program("--json")
    assert done.returncode == 2
    assert "'--json' needs '--check'" in done.stderr


def test_the_region_s_tables_are_those_that_the_tests_look_at(consumer: Checked, tables: Callable[[], set[str]]) -> None:
    """Else "nothing was made" could not fail."""
    client = boto3.client("dynamodb", endpoint_url=consumer.written["stream"]["dynamodbEndpoint"], region_name=REGION)
    key = {"AttributeName": "id"}
    name = consumer.written["checkpoints"]["table"]
    attributes, schema = [key | {"AttributeType": "S"}], [key | {"KeyType": "HASH"}]
    client.create_table(TableName=name, AttributeDefinitions=attributes, KeySchema=schema, BillingMode="PAY_PER_REQUEST")
    assert name in tables()
