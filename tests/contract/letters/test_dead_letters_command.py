"""`python -m sluice_checkpoints dead-letters`: letters on a disk, and on a real S3 server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from click.testing import CliRunner, Result

from sluice_checkpoints.cli.main import main
from sluice_checkpoints.letters import pending
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_lab.aws.emulators import S3_ACCESS_KEY, S3_SECRET_KEY

SEQUENCE, ERROR = "49669580137240000000000000000000000000000000000000000049", "Traceback (most recent call last):\nValueError: [no]"
LETTER = DeadLetter("c-1", "orders", "shardId-000000000000", SEQUENCE, 0, 1_700_000_000_123, "k", b"\xff[red]{", 7, 3, ERROR)
LETTERS = [LETTER, replace(LETTER, sequence=f"{LETTER.sequence[:-2]}50", sub=2), replace(LETTER, consumer="c-2")]
WAITING = replace(LETTER, sequence=f"{LETTER.sequence[:-2]}51", batch=8)
PENDING = f"c-1/{pending.FOLDER}/{pending.PendingName(8, 3, 1, pending.REJECTED)}{pending.SUFFIX}"
Run = Callable[..., Result]


@pytest.fixture(params=["disk", pytest.param("S3", marks=pytest.mark.built)])
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    if request.param == "disk":
        where = [f"--path=file://{tmp_path}"]
        for letter in LETTERS:
            file = tmp_path / letter.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(letter.to_json())
        (tmp_path / PENDING).parent.mkdir()
        (tmp_path / PENDING).write_text(pending.to_text([WAITING, LETTER]))  # the other one is published already
    else:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", S3_ACCESS_KEY)  # other tests of the process may have set others,
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", S3_SECRET_KEY)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # and boto3 keeps those that it found first
        endpoint, bucket = request.getfixturevalue("s3_endpoint"), f"letters-{uuid4()}"
        client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        client.create_bucket(Bucket=bucket)
        for letter in LETTERS:
            client.put_object(Bucket=bucket, Key=f"dead/{letter.path}", Body=letter.to_json())
        client.put_object(Bucket=bucket, Key=f"dead/{PENDING}", Body=pending.to_text([WAITING, LETTER]))
        where = [f"--path=s3a://{bucket}/dead/", f"--s3-endpoint={endpoint}", "--region=us-east-1"]
    return lambda *arguments: CliRunner().invoke(main, ["dead-letters", *arguments, *where])


def test_all_letters_are_listed_below_their_error(run: Run) -> None:
    shown = run("list")
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines()[0] == "4 x ValueError: [no]"
    assert [line.split()[0] for line in shown.output.splitlines()[1:5]] == [*(one.path for one in LETTERS), WAITING.path]
    assert "4 dead letters; 1 of them pending: their batches are not known to be committed" in shown.output


def test_those_of_one_consumer_are_a_document(run: Run) -> None:
    shown = run("list", "--consumer", "c-2", "--json")
    (letter,) = json.loads(shown.stdout)["letters"]
    assert (letter["name"], letter["consumer"]) == (LETTERS[2].path, "c-2")


def test_a_letter_of_a_batch_that_is_not_committed_is_pending(run: Run) -> None:
    listed = json.loads(run("list", "--consumer", "c-1", "--json").stdout)["letters"]
    assert [(letter["name"], letter["pending"], letter["redriven"]) for letter in listed] == [
        (LETTERS[0].path, False, None),
        (LETTERS[1].path, False, None),
        (WAITING.path, True, None),
    ]
    assert "pending: not redriven yet, because batch 8 is not known to be committed" in run("show", WAITING.path).output
    assert json.loads(run("show", WAITING.path, "--json").stdout)["pending"] is True
    assert json.loads(run("show", LETTER.path, "--json").stdout)["pending"] is False


def test_a_letter_is_shown_with_its_record(run: Run) -> None:
    shown = run("show", LETTERS[1].path)
    assert "subSequenceNumber  2" in shown.output
    assert "\\xff[red]{" in shown.output
    assert "ValueError: [no]" in shown.output
    document = json.loads(run("show", LETTERS[1].path, "--json").stdout)
    assert base64.b64decode(document["data"]) == LETTER.data


@pytest.mark.parametrize("name", ["c-1/none.json", "../c-1.json", "/etc/passwd"])
def test_a_letter_that_is_not_there_is_refused(run: Run, name: str) -> None:
    shown = run("show", name)
    assert shown.exit_code == 65
    assert name in shown.output


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none"), "ftp://x"):
        shown = CliRunner().invoke(main, ["dead-letters", "list", "--path", path])
        assert (shown.exit_code, path in shown.output.replace("\n", "")) == (65, True)
