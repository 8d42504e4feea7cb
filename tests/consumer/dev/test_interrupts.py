"""`dev` is interrupted: what Ctrl-C does before Spark has started, and while it works."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from rich.console import Console

from sluice_consumer.dev import program
from sluice_consumer.dev.program import CommandLine
from sluice_consumer.dev.session import DevSession


@pytest.fixture
def screen() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def dev(screen: io.StringIO) -> Iterator[DevSession]:
    yield DevSession(program.options(CommandLine("my_pipeline:process"), Path("/none")), Console(file=screen))
    logging.disable(logging.NOTSET)


def test_before_pyspark_knows_its_jvm_an_interrupt_waits_for_it(dev: DevSession, screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM whose parent is gone before it could report its port would stay for ever."""
    monkeypatch.setattr(SparkContext, "_gateway", None)
    dev._stop()
    dev._stop()
    assert dev._over.is_set()
    assert screen.getvalue() == "stopping once Spark has started\n"


def test_the_second_interrupt_does_not_wait_for_the_open_batch(dev: DevSession, screen: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", object())
    dev._stop()
    assert screen.getvalue() == "stopping after the open batch; press Ctrl-C again to stop now\n"
    with pytest.raises(KeyboardInterrupt):
        dev._stop()


@pytest.mark.parametrize(("error", "code"), [(None, 0), (KeyboardInterrupt, 130)])
def test_the_exit_code_tells_which_of_them_it_was(error: type[BaseException] | None, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_session: DevSession) -> None:
        if error:
            raise error

    monkeypatch.setattr(DevSession, "run", run)
    assert program.run(CommandLine("my_pipeline:process")) == code
