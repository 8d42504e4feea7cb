"""Classes are found in the real jars of PySpark, and in what a session's settings add to them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from sluice_consumer.sinks import class_path

HDFS = "org.apache.hadoop.hdfs.DistributedFileSystem"
MISSING = "com.example.Nothing"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "more" / "connector.jar"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("com/example/Files.class", b"")
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "broken.jar").write_bytes(b"no jar")
    with zipfile.ZipFile(home / "jars" / "core.jar", "w") as made:
        made.writestr("com/example/Core.class", b"")
    monkeypatch.setenv("SPARK_HOME", str(home))
    return home


def test_the_jars_of_pyspark_have_hdfs_and_not_what_nobody_put_there() -> None:
    here = class_path.of_spark({}, {})
    assert len(here.places) > 100
    assert (here.has(HDFS), here.has(MISSING)) == (True, False)


def test_settings_add_jars_and_folders(jar: Path, bare: Path, tmp_path: Path) -> None:
    (tmp_path / "classes" / "com" / "example").mkdir(parents=True)
    (tmp_path / "classes" / "com" / "example" / "Loose.class").touch()
    for settings in ({"spark.jars": f"file://{jar}"}, {"spark.jars": str(jar)}, {"spark.driver.extraClassPath": f"{jar.parent}/*"}):
        assert class_path.of_spark(settings, {}).has("com.example.Files") is True
    assert class_path.of_spark({"spark.driver.extraClassPath": str(tmp_path / "classes")}, {}).has("com.example.Loose") is True
    assert (class_path.of_spark({}, {}).has("com.example.Core"), class_path.of_spark({}, {}).has("com.example.Files")) == (True, False)
    assert bare.exists()


def test_a_file_of_defaults_counts_and_the_session_s_own_settings_win(jar: Path, bare: Path) -> None:
    (bare / "conf").mkdir()
    (bare / "conf" / "spark-defaults.conf").write_text(f"# a comment\nspark.jars   {jar}\nspark.x=y\n")
    assert class_path.of_spark({}, {}).has("com.example.Files") is True
    assert class_path.of_spark({"spark.jars": ""}, {}).has("com.example.Files") is False
    assert class_path.of_spark({}, {"SPARK_CONF_DIR": str(bare)}).has("com.example.Files") is False


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ({"spark.jars.packages": "org.example:connector:1"}, {}),
        ({"spark.jars": "https://repository.example/connector.jar"}, {}),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--packages org.example:connector:1 pyspark-shell"}),
        ({}, {"SPARK_DIST_CLASSPATH": "/opt/hadoop/*"}),
    ],
)
def test_what_only_spark_can_know_is_not_judged(settings: dict[str, str], environment: dict[str, str], bare: Path) -> None:
    """A working pipeline is never refused; what is there is still found."""
    here = class_path.of_spark(settings, environment)
    assert (here.has(MISSING), here.has("com.example.Core")) == (None, True)
    assert bare.exists()


@pytest.mark.slow
def test_a_jar_is_read_as_the_library_for_archives_reads_it(tmp_path: Path) -> None:
    commented = tmp_path / "commented.jar"
    with zipfile.ZipFile(commented, "w") as made:
        made.writestr("com/example/Files.class", b"")
        made.comment = b"x" * 1000
    jars = [*class_path.of_spark({}, {}).places, commented]
    for jar in jars:
        listed = class_path._directory(jar)
        assert listed is not None
        with zipfile.ZipFile(jar) as archive:
            assert all(name.encode() in listed for name in archive.namelist()), jar
    (tmp_path / "none.jar").write_bytes(b"no jar")
    assert class_path._directory(tmp_path / "none.jar") is None
