"""Whether there is a Java for Spark: the one that Spark's scripts would start."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks.local import check_java
from sluice_consumer.checks.model import CheckOutcome, StartFacts
from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.process import spark_start
from sluice_consumer.spark import java


def home(folder: Path, says: str, code: int = 0) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return {java.HOME: str(folder), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("version", "outcome"), [("17.0.9", CheckOutcome.OK), ("21", CheckOutcome.OK), ("19.0.1", CheckOutcome.WARNING), ("25", CheckOutcome.WARNING)]
)
def test_a_java_that_was_never_tried_is_a_warning(tmp_path: Path, version: str, outcome: CheckOutcome) -> None:
    found = check_java(StartFacts(tmp_path, environment=home(tmp_path, f'openjdk version "{version}" 2023-10-17')))
    assert (found.outcome, f"Java {version.partition('.')[0]}" in found.message) == (outcome, True)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ('java version "1.8.0_392"', "Spark needs Java 17 or later, and `.*/bin/java` is Java 8; install Java 17 or 21"),
        ("CMD: bad array subscript", "-version` ends with 1 and names no version .*bad array subscript.*; install"),
    ],
)
def test_a_java_that_cannot_run_spark_is_refused(tmp_path: Path, says: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        java.check(home(tmp_path, says, code=1))


def test_a_java_that_hangs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = home(tmp_path, "")
    Path(environment[java.HOME], "bin", "java").write_text("#!/bin/sh\nwhile :; do :; done\n")
    monkeypatch.setattr(java, "SECONDS", 0.2)
    with pytest.raises(Refused, match=r"-version` does not end within 0.2 s; install"):
        java.check(environment)


def test_a_java_that_only_the_site_knows_is_found(tmp_path: Path) -> None:
    """Spark's scripts read spark-env.sh before they look for Java."""
    there, conf = home(tmp_path, 'openjdk version "21.0.1"')[java.HOME], tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-env.sh").write_text(f"echo a word of the site\nexport JAVA_HOME={there}\n")
    assert java.check({"PATH": "/usr/bin:/bin", "SPARK_CONF_DIR": str(conf)}) == 21


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({java.HOME: "/opt/nosuch"}, "JAVA_HOME is /opt/nosuch, and there is no bin/java in it"),
        ({"PATH": "/nosuch"}, "no java on the PATH, and JAVA_HOME is not set"),
    ],
)
def test_where_there_is_no_java_that_is_what_is_said(environment: dict[str, str], words: str) -> None:
    """Spark's own words are JAVA_GATEWAY_EXITED, or bash's."""
    with pytest.raises(Refused, match=f"^Spark needs Java: {words} .No such file or directory.; install Java 17 or 21"):
        java.check(environment)


def test_a_redrive_and_a_rollback_look_for_java_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """They start Spark in one step, without the checks of a driver."""
    monkeypatch.setenv(java.HOME, "/nosuch")
    with pytest.raises(Refused, match="JAVA_HOME is /nosuch"):
        spark_start.session(Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("orders:process")), "local[1]")
