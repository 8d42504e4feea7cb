"""How a driver process ends: what it says, what it waits for, and what its supervisor understands."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
from dataclasses import replace
from io import FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from sluice_checkpoints import termination_log
from sluice_checkpoints.errors import Fenced, Refused, ServiceUnavailable, SluiceError
from sluice_consumer import __main__ as main_module
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig, UntilConfig
from sluice_consumer.exits.ending import Ending, Stopped, decoded
from sluice_consumer.exits.last_words import OpenBatch
from sluice_consumer.pipelines import NotNow
from sluice_consumer.process import child_process, driver, supervisor
from sluice_consumer.process.driver import Driver, attempt, finish
from sluice_consumer.spark.jobs import JobsNotDone

CONFIG = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"))


def made(*, until_tip: bool = False) -> Driver:
    config = replace(CONFIG, until=UntilConfig(tip=True)) if until_tip else CONFIG
    return Driver(config, FileIO(os.devnull), lambda: pytest.fail("no Spark here"))


class Spark:
    """A session whose end may take for ever; `meanwhile` is called when it begins to stop."""

    def __init__(self, meanwhile: Any = None, *, hangs: bool = False) -> None:
        self.meanwhile, self.over = meanwhile or (lambda: None), threading.Event()
        if not hangs:
            self.over.set()

    def stop(self) -> None:
        self.meanwhile()
        assert self.over.wait(60)


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(termination_log.VARIABLE, str(tmp_path / "log"))
    return tmp_path / "log"


def test_a_driver_says_how_it_ended_before_spark_stops(words: Path) -> None:
    """Stopping may take long, or for ever."""
    one, said = made(), list[Any]()
    one._spark = cast("Any", Spark(lambda: said.append(json.loads(words.read_text()))))
    assert finish(one, Ending(1, "RuntimeError", "the sink is full")) == 1
    assert said == [{"reason": "RuntimeError", "message": "the sink is full"}]


@pytest.mark.parametrize(
    ("ending", "code"),
    [(Ending(1, "RuntimeError", "m"), 1), (Ending(65, "Refused", "m", quiet=True), 65), (Ending(0, "", "", quiet=True), 0)],
    ids=["failed", "refused", "drained"],
)
def test_a_spark_that_does_not_stop_keeps_the_lease_for_a_while_only(ending: Ending, code: int, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process ends with its code, and the lease is not released: somebody may still be working."""
    monkeypatch.setattr(driver, "SPARK_SECONDS", 0.01)
    one, spark = made(), Spark(hangs=True)
    one._spark = cast("Any", spark)
    assert decoded(finish(one, ending)) == (code, False)
    spark.over.set()
    assert words.exists() == bool(ending.reason)


def test_a_driver_stops_waiting_for_spark_before_its_supervisor_kills_it() -> None:
    assert 0 < driver.SPARK_SECONDS < supervisor.STOP_SECONDS


@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("code", [0, 1, 65, 75, 76])
def test_a_supervisor_understands_its_driver(code: int, quiet: bool) -> None:  # noqa: FBT001
    """One exit status carries the code and whether the lease may be released."""
    assert decoded(Ending(code, "", "", quiet).status) == (code, quiet)


@pytest.mark.parametrize("worked", [True, False])
def test_an_ending_before_the_first_job_lets_the_lease_be_released(worked: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    def refuse(self: Driver) -> Ending:
        self.worked = worked
        raise Refused("pipeline.entrypoint: m:f: there is no module m")

    monkeypatch.setattr(Driver, "run", refuse)
    ending = attempt(made())
    assert (ending.code, ending.quiet) == (65, not worked)


@pytest.mark.parametrize("code", [None, 0, 65, "no orders"])
def test_an_exit_that_the_driver_s_own_code_asks_for_is_a_failure(code: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's may end so when it is imported. With 0 it would look like a clean drain, and a backfill like a finished one."""

    def leave(_self: Driver) -> Ending:
        raise SystemExit(code)

    monkeypatch.setattr(Driver, "run", leave)
    ending = attempt(made())
    assert (ending.code, ending.reason) == (1, "SystemExit")
    assert str(code) in ending.message


@pytest.mark.parametrize(("until_tip", "told", "code"), [(True, True, 75), (True, False, 0), (False, True, 0)])
@pytest.mark.parametrize("quiet", [True, False])
def test_only_a_run_that_reached_its_end_ends_with_code_0(until_tip: bool, told: bool, code: int, quiet: bool) -> None:  # noqa: FBT001
    """Whoever started a backfill takes 0 for done. What is asked for without an end ends when it is told to."""
    one = made(until_tip=until_tip)
    if told:
        one._drain.set()
    work = SimpleNamespace(loop=lambda _engine: None, done="3 records")
    ending = one._worked_off(cast("Any", work), cast("Any", SimpleNamespace(quiet=lambda: quiet)))
    reason, message = ("EndReached", "3 records") if until_tip else ("", "")
    assert (ending.code, ending.quiet, ending.reason) == (code, quiet, "Interrupted" if code else reason)
    assert code or ending.message == message


@pytest.mark.parametrize(("error", "code"), [(NotNow("the sink is in maintenance"), 75), (Refused("there is no such table"), 65)])
@pytest.mark.parametrize("quiet", [True, False])
def test_a_process_that_asks_for_its_batch_later_or_refuses_lets_the_lease_be_released_if_nobody_works(
    error: SluiceError,
    code: int,
    quiet: bool,  # noqa: FBT001
) -> None:
    def loop(_engine: object) -> None:
        raise error

    engine = cast("Any", SimpleNamespace(quiet=lambda: quiet))
    ending = made()._worked_off(cast("Any", SimpleNamespace(loop=loop)), engine)
    assert (ending.code, ending.reason, ending.quiet) == (code, type(error).__name__, quiet)


DRIVER = """
import os, sys, threading
from sluice_consumer.process.sigterm import set_on_term
with open(os.environ["SAID"], "w") as said:
    print("started", file=said)
assert sys.stdin.readline() == "go\\n"
told = threading.Event()
set_on_term(told, lambda: None)
sys.exit(7 if told.wait(60) else 1)
"""


def test_a_sigterm_that_comes_before_a_driver_can_hear_it_is_heard_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default kills; then the lease would not be released, and the drain would look like a failure."""
    reading, writing = os.pipe()
    with FileIO(reading) as said, FileIO(writing, "w"):
        monkeypatch.setenv("SAID", f"/proc/{os.getpid()}/fd/{writing}")
        with child_process.starting([sys.executable, "-c", DRIVER]) as process:
            assert said.readline() == b"started\n"
            process.send_signal(signal.SIGTERM)
            process.hand_down("go")
            assert process.wait(60) == 7
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize(("more", "code"), [(["--until", "tip"], 75), (["--until", "2026-01-01T00:00:00Z"], 75), ([], 0)])
def test_a_run_that_is_stopped_before_it_began_has_not_reached_the_tip(
    more: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 would say that everything was processed."""
    monkeypatch.setattr(main_module, "supervise", lambda *_: (_ for _ in ()).throw(Stopped("told to stop")))
    monkeypatch.setattr(os, "_exit", sys.exit)
    path = tmp_path / "consumer.json"
    stream = {"name": "s", "region": "r"}
    path.write_text(json.dumps({"stream": stream, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "m:f"}}))
    assert CliRunner().invoke(main_module.main, ["--config", str(path), *more]).exit_code == code


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--until", "noon"], "is not an ISO 8601 time"),
        (["--until", "2026-01-01T00:00:00"], "has no time zone"),
    ],
)
def test_an_end_that_is_none_is_refused_before_anything_is_started(
    more: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main_module, "supervise", lambda *_: pytest.fail("started"))
    monkeypatch.setattr(os, "_exit", sys.exit)
    done = CliRunner().invoke(main_module.main, ["--config", str(tmp_path / "none.json"), *more])
    assert done.exit_code == 65
    assert says in " ".join(done.output.split())


def test_a_check_looks_at_the_end_that_options_name(tmp_path: Path) -> None:
    path = tmp_path / "consumer.json"
    path.write_text(json.dumps({"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "m:f"}}))
    done = CliRunner().invoke(main_module.main, ["--config", str(path), "--check", "--json", "--until", "noon"])
    assert done.exit_code == 65
    assert "is not an ISO 8601 time" in done.output


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, batch: OpenBatch | None) -> tuple[Ending, list[bool]]:
    asked = list[bool]()

    def raise_it(self: Driver) -> Ending:
        self.work = cast("Any", SimpleNamespace(consumer=None, open_batch=lambda *, ask: asked.append(ask) or batch))
        raise error

    monkeypatch.setattr(Driver, "run", raise_it)
    monkeypatch.setattr(driver, "root_cause", lambda _consumer, raised: raised)
    return attempt(made()), asked


BATCH = OpenBatch(7, "orders", "orders", ())


@pytest.mark.parametrize("error", [ValueError("bad"), JobsNotDone("job 3 failed")])
def test_a_driver_with_an_open_batch_ends_with_which_one_it_is_and_what_happens_next(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    ending, _ = failing(monkeypatch, error, BATCH)
    assert ending.reason == type(error).__name__
    assert ending.screen.splitlines()[0] == f"{type(error).__name__}: {error}"
    assert ending.message.startswith(f"{type(error).__name__}: {error}")
    for said in (ending.screen, ending.message):
        assert "batch 7 of orders: no record of it was read" in said
        assert "batch 7 comes again" in said.rpartition("next: ")[2]


@pytest.mark.parametrize("error", [Refused("no such stream"), Fenced("a later epoch took over"), NotNow("later")])
def test_an_error_whose_words_say_it_all_is_told_in_them(error: SluiceError, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failing(monkeypatch, error, BATCH)[0] == Ending(error.exit_code, type(error).__name__, str(error), quiet=True)


def test_a_table_that_did_not_answer_is_not_asked_for_the_batchs_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be waited for once more, for as long."""
    assert failing(monkeypatch, ServiceUnavailable("no answer"), BATCH)[1] == [False]
    assert failing(monkeypatch, ValueError("bad"), BATCH)[1] == [True]


def test_a_driver_ends_with_the_error_itself_where_nothing_more_can_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of a JVM that is gone cannot even say what it was."""

    class Gone(Exception):
        def __str__(self) -> str:
            raise OSError("Connection refused")

    ending, _ = failing(monkeypatch, Gone("o92"), BATCH)
    assert (ending.code, ending.reason, ending.message) == (1, "Gone", "('o92',)")


def test_the_full_trace_is_a_line_of_debug(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    failing(monkeypatch, ValueError("bad"), BATCH)
    (record,) = (record for record in caplog.records if record.exc_info)
    assert record.levelno == logging.DEBUG
