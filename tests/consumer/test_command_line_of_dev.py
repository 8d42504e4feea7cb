"""The command line of the consumer, with and without `dev`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

from sluice_checkpoints.errors import Refused
from sluice_consumer.__main__ import main
from sluice_consumer.dev import feeder, program


def test_without_a_command_the_configuration_is_required() -> None:
    ran = CliRunner().invoke(main, [])
    assert (ran.exit_code, "Missing option '--config'" in ran.output) == (2, True)


def test_the_help_shows_the_command() -> None:
    assert "dev " in CliRunner().invoke(main, ["--help"]).output


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(["path=/tmp/x"], {"path": "/tmp/x"}), (["n=3", "on=true"], {"n": 3, "on": True}), (["a=b=c"], {"a": "b=c"}), ([], {})],  # noqa: S108 - no file
)
def test_arguments_are_json_or_text(given: list[str], wanted: dict[str, object]) -> None:
    assert program.arguments(given) == wanted


@pytest.mark.parametrize("given", ["path", "=x"])
def test_an_argument_without_a_name_or_value_is_refused(given: str) -> None:
    with pytest.raises(Refused, match=f"--arg {given}: say NAME=VALUE"):
        program.arguments([given])


def test_lines_are_whole_however_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [b"one\ntw", b"o\r\n\nthr", b"ee"]
    monkeypatch.setattr(feeder.os, "read", lambda _source, _size: pieces.pop(0) if pieces else b"")
    assert [line for found in feeder.lines(0, lambda: False) for line in found] == [b"one", b"two", b"three"]


def test_lines_that_are_appended_to_a_file_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, more, said = tmp_path / "orders.jsonl", [b"three\n", b"four\nfive"], list[str]()
    file.write_bytes(b"one\ntwo")

    def append(_seconds: float) -> None:
        if not more:
            raise TimeoutError
        with file.open("ab") as end:
            end.write(more.pop(0))

    class Stream:
        fed: ClassVar[list[tuple[bytes, str]]] = []

        def put_records(self, StreamName: str, Records: list[dict[str, Any]]) -> None:  # noqa: N803 - AWS' names
            assert StreamName == "orders"
            self.fed.extend((record["Data"], record["PartitionKey"]) for record in Records)

    monkeypatch.setattr(feeder.time, "sleep", append)
    feeder.Feeder(Stream(), "orders", said.append).feed(file)
    assert Stream.fed == [(b"one", "1"), (b"two", "2"), (b"three", "3"), (b"four", "4"), (b"five", "5")]
    assert said == [f"2 lines were read to the end of {file}; lines that you append follow", "no more lines are read: TimeoutError: "]
