"""A supervisor that stands by: what it refuses, when its wait ends, and what it checks under the lease."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import FileIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner
from supervising import CONFIG, LEASE, Targets, Time

from sluice_checkpoints.aws.retry import EXPIRED_TOKEN, Again, Patience
from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.errors import LeaseHeld, Refused, ServiceUnavailable
from sluice_checkpoints.protocol.lease import LeaseRequest, TakenLease, take_over
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer import __main__ as main_module
from sluice_consumer import pipelines
from sluice_consumer.config import Config, MetricsConfig, PipelineConfig, UntilConfig
from sluice_consumer.exits.ending import OwnWord, Stopped
from sluice_consumer.process import child_process, driver, standby, supervisor, wiring
from sluice_consumer.process.child_process import DriverProcess
from sluice_consumer.process.driver import Driver
from sluice_consumer.process.supervisor import Supervisor
from sluice_consumer.spark import threads
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import MemoryTable


class Setting:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.targets, self.stream = Targets(None), MemoryStream("s")
        self.store = CheckpointStore(MemoryTable())
        for name, made in (("store", self.store), ("looking_store", self.store), ("catalog", self.stream), ("targets", self.targets)):
            patch.setattr(wiring, name, lambda _config, made=made: made)
        supervisor.open_table(CONFIG)
        self.targets.table = cast("MemoryTable", self.store.table)
        self.first = take_over(self.store, LeaseRequest(30_000, "first", ""), Time().watcher())
        self.time = Time()
        self.keeper = Supervisor(CONFIG, self.store, self.store)
        self.ready = False
        self.driver = cast("DriverProcess", SimpleNamespace(poll=lambda: None, ready=lambda: self.ready))

    def at(self, moment: float, what: Callable[[], object]) -> Setting:
        self.time.at[moment] = what
        return self

    def take(self) -> TakenLease:
        """It has the lease; a wait of a lease's promise passes at once, for nobody beats."""
        return standby.take(self.keeper, CONFIG, self.driver, self.time.sleep)

    @property
    def lease(self) -> tuple[int, bool]:
        row = self.store.consumer()
        assert row is not None
        return row.generation, row.released


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Setting:
    return Setting(monkeypatch)


@pytest.mark.parametrize(
    ("config", "says"),
    [(replace(CONFIG, force=True), "^force: "), (replace(CONFIG, until=UntilConfig(tip=True)), "^until: ")],
    ids=["by force", "with an end"],
)
def test_nothing_stands_by(config: Config, says: str) -> None:
    with pytest.raises(Refused, match=says):
        standby.check(config)


def test_a_standby_takes_a_released_lease_and_has_checked_its_start_again(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the lease: what a check reads then, nobody changes any more."""
    checks, real = list[tuple[int, bool]](), supervisor.open_table

    def open_table(*args: Any, **how: Any) -> CheckpointStore:
        checks.append(setting.lease)
        return real(*args, **how)

    monkeypatch.setattr(supervisor, "open_table", open_table)
    taken = setting.at(5.0, lambda: setting.store.release(setting.first.epoch)).take()
    assert (taken.how, taken.epoch.generation, setting.time.now) == ("released", 2, 5.0)
    assert checks == [(2, False)]


def test_a_standby_says_once_that_its_driver_is_ready(setting: Setting) -> None:
    """The operator drains the driver that works only then."""
    said = list[float]()
    setting.at(2.0, lambda: setattr(setting, "ready", True)).at(5.0, lambda: setting.store.release(setting.first.epoch))
    standby.take(setting.keeper, CONFIG, setting.driver, setting.time.sleep, standby.Readiness(lambda: said.append(setting.time.now)))
    assert said == [2.0]


def expired() -> ServiceUnavailable:
    error = ServiceUnavailable("GetItem on table t: no success in 9 tries over 10 s")
    error.__cause__ = Again("ExpiredTokenException: the token has expired", cause=EXPIRED_TOKEN)
    return error


def watched(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, silent: tuple[float, float], error: Callable[[], Exception] = lambda: ServiceUnavailable("no")
) -> list[tuple[str, float]]:
    said, read = list[tuple[str, float]](), setting.store.consumer
    setting.ready = True

    def consumer() -> Any:
        if silent[0] < setting.time.now < silent[1]:
            raise error()
        return read()

    monkeypatch.setattr(setting.store, "consumer", consumer)
    state = standby.Readiness(
        lambda: said.append(("ready", setting.time.now)), lambda: said.append(("lost", setting.time.now)), lambda: setting.time.now
    )
    try:
        standby.take(setting.keeper, CONFIG, setting.driver, setting.time.sleep, state)
    except ServiceUnavailable:
        said.append(("ended", setting.time.now))
    return said


def test_a_standby_whose_table_does_not_answer_says_that_it_is_not_ready(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator would count on it, and it could not take a lease. It says that it is ready again when a look has had an answer."""
    said = watched(setting.at(60.0, lambda: setting.store.release(setting.first.epoch)), monkeypatch, (5.2, 20.2))
    assert [word for word, _ in said] == ["ready", "lost", "ready"]
    assert said[1][1] < 6
    assert 20 < said[2][1] < 22


def test_a_standby_whose_table_does_not_answer_ends_after_minutes(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    said = watched(setting, monkeypatch, (5.2, 1e9))
    assert [word for word, _ in said] == ["ready", "lost", "ended"]
    assert standby.NO_ANSWER_SECONDS <= said[2][1] - said[1][1] < standby.NO_ANSWER_SECONDS + 2


def test_a_standby_whose_token_has_expired_ends_after_half_a_minute(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the named driver, and then nobody reads until it ends. The next one has the token that its Secret holds by then."""
    said = watched(setting, monkeypatch, (5.2, 1e9), expired)
    assert [word for word, _ in said] == ["ready", "lost", "ended"]
    assert standby.KEY_SECONDS <= said[2][1] - said[1][1] < standby.KEY_SECONDS + 2
    row = CheckpointStore(setting.store.table).consumer()
    assert row is not None
    assert (row.generation, row.released) == (1, False)


def test_a_token_that_is_renewed_in_time_keeps_a_standby(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a Secret is written again within a minute, say. A later expiry begins its own half minute."""
    monkeypatch.setattr(standby, "KEY_SECONDS", 12.0)
    refusals = iter([*(expired() for _ in range(20)), ServiceUnavailable("no answer"), *(expired() for _ in range(20))])
    said = watched(setting.at(60.0, lambda: setting.store.release(setting.first.epoch)), monkeypatch, (5.2, 25.2), refusals.__next__)
    assert [word for word, _ in said] == ["ready", "lost", "ready"]


@pytest.mark.parametrize("cause", ["NoAnswer", "ThrottlingException", "Credentials"])
def test_only_a_key_that_the_table_refuses_ends_a_standby_early(cause: str) -> None:
    """A provider of credentials that does not answer may be back in a minute, as a table may be."""
    error = ServiceUnavailable("no success")
    error.__cause__ = Again("later", cause=cause)
    assert (standby.refuses_key(error), standby.refuses_key(expired())) == (False, True)


def test_an_expired_token_is_told_apart_by_what_the_service_answers() -> None:
    answer = {
        "Error": {"Code": EXPIRED_TOKEN, "Message": "The security token included in the request is expired"},
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }

    def get_item(**_request: object) -> object:
        raise ClientError(cast("Any", answer), "GetItem")

    table = DynamoTable("t", SimpleNamespace(get_item=get_item), Patience(limit=0.0))
    with pytest.raises(ServiceUnavailable, match="were not renewed") as found:
        CheckpointStore(table).consumer()
    assert standby.refuses_key(found.value)


def test_a_standby_looks_at_its_table_with_the_patience_of_a_look(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store of a batch would try for a minute: for that time the operator counts on a standby that cannot take a lease, and SIGTERM waits."""
    impatient = CheckpointStore(setting.store.table)
    monkeypatch.setattr(wiring, "looking_store", lambda _config: impatient)
    monkeypatch.setattr(setting.store, "take", lambda *_: pytest.fail("not the store of a batch"))
    assert setting.at(5.0, lambda: setting.store.release(setting.first.epoch)).take().how == "released"


def test_a_table_that_was_restored_while_a_driver_stood_by_is_refused_and_its_lease_is_free(setting: Setting) -> None:
    """Its batch numbers would come again with other records. The checks of the start had passed."""

    def restored() -> None:
        setting.targets.id = "arn:t@2"
        setting.store.release(setting.first.epoch)

    with pytest.raises(Refused, match=r"checkpoints\.table: .*is a copy of arn:t@1"):
        setting.at(5.0, restored).take()
    assert setting.lease == (2, True)


def test_a_stream_that_was_made_again_while_a_driver_stood_by_is_refused(setting: Setting) -> None:
    def recreated() -> None:
        setting.stream.created_millis += 1
        setting.store.release(setting.first.epoch)

    with pytest.raises(Refused, match="new table"):
        setting.at(5.0, recreated).take()
    assert setting.lease == (2, True)


def test_a_table_that_was_deleted_while_a_driver_stood_by_is_not_made_again(setting: Setting) -> None:
    """The new one would begin at start.position."""

    def deleted() -> None:
        setting.targets.table = None
        setting.store.release(setting.first.epoch)

    with pytest.raises(Refused, match=r"checkpoints\.table: t does not exist"):
        setting.at(5.0, deleted).take()
    assert setting.targets.asked == ["t"]  # of the first start


def test_a_check_that_takes_long_does_not_cost_the_lease(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    beaten, real = list[float](), setting.keeper.heart

    def heart(taken: TakenLease) -> supervisor.Heartbeats:
        found = real(replace(taken, sent=taken.sent - LEASE / 2), beaten.append)
        monkeypatch.setattr(supervisor, "open_table", lambda *_, **__: found.once())
        return found

    monkeypatch.setattr(setting.keeper, "heart", heart)
    taken = setting.at(5.0, lambda: setting.store.release(setting.first.epoch)).take()
    assert beaten
    assert taken.sent == beaten[-1]


def test_a_driver_that_dies_ends_its_standby_within_a_look(setting: Setting) -> None:
    driver_over = lambda: setattr(setting.driver, "poll", lambda: 1)  # noqa: E731
    with pytest.raises(standby.DriverOver):
        setting.at(3.0, driver_over).take()
    assert (setting.time.now, setting.lease) == (3.0, (1, False))


def test_sigterm_ends_a_standby_and_the_lease_is_not_touched(setting: Setting) -> None:
    with pytest.raises(Stopped):
        setting.at(3.0, setting.keeper.on_term).take()
    assert (setting.time.now, setting.lease) == (3.0, (1, False))


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("import os; os.kill(os.getpid(), 9)", (1, "DriverKilled")),
        ("import os; os._exit(0)", (1, "DriverExited")),
        ("from sluice_consumer.exits.ending import OwnWord, leave; OwnWord.open(); leave(65 | 128)", (65, "")),
        ("from sluice_consumer.exits.ending import OwnWord, leave; OwnWord.open(); leave(0)", (1, "")),
    ],
    ids=["killed", "without a word", "refused", "done"],
)
def test_a_standby_ends_as_its_driver_has(code: str, ends: tuple[int, str]) -> None:
    with child_process.starting([sys.executable, "-c", code]) as process:
        process.wait(60)
        ending = standby.ending(process)
    assert (ending.code, ending.reason) == ends


def test_a_standby_says_for_whom_it_waits_once(caplog: pytest.LogCaptureFixture) -> None:
    """A heartbeat moves every few seconds, for days. No answer of the table is said each time."""
    caplog.set_level(logging.INFO)
    tell = standby.Announcement()
    for error in (LeaseHeld("a/1 holds the lease: 1"), LeaseHeld("a/1 holds the lease: 2"), ServiceUnavailable("no answer"), LeaseHeld("b/2 holds")):
        tell(error)
    assert [caplog.text.count(words) for words in ("a/1 holds the lease", "no answer", "b/2 holds")] == [1, 1, 1]


# -- its driver --------------------------------------------------------------------------------------------------------------------


called = list[str]()


def process(_batch: object, _info: object) -> None:
    """A pipeline."""


def prepare(_spark: object, _args: object) -> None:
    called.append("prepared")


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    called.clear()
    monkeypatch.setattr(driver, "warm_up_here", lambda *_: called.append("warm"))
    monkeypatch.setattr(driver, "load", lambda _entrypoint: process)
    config = replace(CONFIG, pipeline=PipelineConfig("m:f"), metrics=MetricsConfig(port=0))
    yield Driver(config, FileIO(os.devnull), lambda: pytest.fail("no Spark here"), standby=True)
    vars(process).pop("prepare", None)


SPARK = cast("Any", SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]")))


@pytest.mark.parametrize("safe", [True, False])
def test_a_pipeline_is_prepared_before_the_take_only_if_it_says_that_it_may_be(safe: bool, ready: Driver, tmp_path: Path) -> None:  # noqa: FBT001
    """One that creates a table would do so under the eyes of the driver that works. Either way Spark gets warm, and the supervisor hears of it."""
    process.prepare = pipelines.standby_safe(prepare) if safe else lambda *_: called.append("unsafe")  # type: ignore[attr-defined]
    with FileIO(tmp_path / "word", "w+") as word:
        OwnWord.pipe = word.fileno()
        try:
            ready._get_ready(SPARK)
        finally:
            OwnWord.pipe = None
        assert b"ready" in (tmp_path / "word").read_bytes()
    assert called == (["prepared", "warm"] if safe else ["warm"])
    assert ready.work is None
    ready._metrics.close()


def jvm(is_stopped: Callable[[], bool]) -> Any:
    scala = SimpleNamespace(isStopped=is_stopped)
    return SimpleNamespace(sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: scala)))


def test_a_jvm_that_is_gone_or_stopped_or_hangs_cannot_work() -> None:
    never = threading.Event()
    hangs, gone = jvm(lambda: never.wait(60)), jvm(lambda: (_ for _ in ()).throw(ConnectionRefusedError()))
    assert [threads.can_work(one, 0.05) for one in (hangs, gone, jvm(lambda: True))] == [False] * 3
    assert threads.can_work(jvm(lambda: False), 60)
    never.set()


def test_a_standby_whose_jvm_is_gone_ends_instead_of_waiting_for_a_lease(ready: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take the lease, and only then find that it cannot work."""
    reading, writing = os.pipe()
    answers = iter([False, False])
    monkeypatch.setattr(driver, "STANDBY_LOOK_SECONDS", 0.001)
    ready._spark = jvm(lambda: next(answers))  # then it raises, as a connection does that is refused
    with FileIO(reading) as ready._pipe, FileIO(writing, "w"), pytest.raises(driver.SparkGone):
        ready._ordered()


def test_metrics_of_a_standby_say_so_until_it_has_the_lease(ready: Driver) -> None:
    metrics = ready._metrics
    metrics.stands_by(MetricsConfig(port=0), in_pod=False)
    port = metrics.serve(MetricsConfig(port=0), everywhere=False)
    assert (metrics.registry.get_sample_value("sluice_standby"), metrics._http and metrics._http.server_port) == (1, port)
    metrics.took("released")
    assert metrics.registry.get_sample_value("sluice_standby") == 0
    metrics.close()


def test_a_supervisor_sees_that_its_driver_is_ready() -> None:
    code = "import sys; from sluice_consumer.exits.ending import OwnWord; OwnWord.open(); sys.stdin.readline(); OwnWord.mark('ready'); sys.exit()"
    with child_process.starting([sys.executable, "-c", code]) as child:
        assert not child.ready()
        child_process.permit(child, {})
        child.wait(60)
        assert child.ready()
        assert child.armed() is None


@pytest.mark.parametrize("end", [["--until", "tip"], ["--until", "2026-01-01T00:00:00Z"]])
def test_a_run_with_an_end_does_not_stand_by(end: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(main_module.main, ["--config", str(tmp_path / "none.json"), "--standby", *end])
    assert done.exit_code == 2
    assert "--standby" in done.output


def test_the_driver_s_program_hears_that_it_stands_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen = list[Any]()
    monkeypatch.setattr(main_module, "supervise", lambda _path, arguments, *_: seen.append(arguments) or 0)
    monkeypatch.setattr(os, "_exit", sys.exit)
    path = tmp_path / "consumer.json"
    path.write_text(json.dumps({"stream": {"name": "s", "region": "r"}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "m:f"}}))
    for more in ([], ["--standby"]):
        CliRunner().invoke(main_module.main, ["--config", str(path), *more])
    assert [main_module.STANDBY in arguments for arguments in seen] == [False, True]
