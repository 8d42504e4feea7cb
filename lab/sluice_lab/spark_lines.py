"""Lines of Spark: interpreters and jars of each, and the tests that depend on them (lanes.py runs them).

The default line is that of `pyspark` in constraints/all.txt. constraints/spark-<line>.txt pins what differs from there. A line's
environment holds that alone; the rest is `.venv`'s.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from sluice_consumer.sinks.delta.table import FASTER, SETTINGS
from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import parts, spark_jars
from sluice_lab.machine.processes import run
from sluice_lab.steps import step

FOLDER = places.REPO / "constraints"
PIN = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)
DEMO, SINKS = "tests/lab/test_demo_local.py", "tests/contract/sinks"
MATRIX = "test_matrix.py"
WITH_JARS = {  # of SINKS; the other files need no jar, and the default line runs them
    "4.1": (
        MATRIX,
        "test_iceberg_table.py",
        "test_iceberg_owner.py",
        "test_iceberg_outages.py",
        "test_delta_table.py",
        "test_delta_owner.py",
        "test_rollback.py",
        "test_parquet_files.py",
        "test_bad_input.py",
    ),
    "4.2": ("test_delta_table.py", "test_delta_owner.py", "test_rollback.py", "test_parquet_files.py"),
    "4.3": ("test_parquet_files.py",),
}
ALL = ("tests/contract/spark", "tests/contract/accounts", "tests/consumer/spark", "tests/consumer/streaming", DEMO)
STREAMING = "tests/contract/spark/test_streaming.py"
OF_WORKERS = (  # each line has words of its own for what a Python worker raised
    "tests/consumer/spark/test_python_workers.py::test_each_worker_sends_what_it_raised_in_our_form_whoever_imports_its_module",
    "tests/contract/accounts/test_streaming_query.py::test_workers_that_may_not_assume_the_role_end_a_query_with_the_statement_that_is_missing",
)
SMALL = (
    "tests/contract/spark/test_engine.py",
    f"{STREAMING}::test_state_is_right_and_batches_without_data_disturb_no_number",
    f"{STREAMING}::test_an_error_of_the_function_ends_the_query_and_the_batch_comes_again",
    *OF_WORKERS,
    "tests/consumer/streaming",
    DEMO,
)
DELTA = {**SETTINGS, **FASTER, "spark.delta.logStore.s3a.impl": spark_jars.LOG_STORE_CLASS}
# A query of these tests runs once: to compile it is a fifth of the CPU, and gives nothing. `lake` runs the same sinks as the image does, compiled.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

Pins = dict[str, str]


def pins_of(path: Path) -> Pins:
    """Versions by name, of a file of constraints."""
    return dict(PIN.findall(path.read_text()))


def default() -> str:
    """The line of constraints/all.txt, e.g. `4.1`."""
    return line_of(pins_of(places.REPO / "constraints/all.txt")["pyspark"])


def line_of(version: str) -> str:
    """`4.1` of `4.1.4`."""
    return ".".join(version.split(".")[:2])


def image_line() -> str:
    """The line that the consumer image has by default."""
    (line,) = re.findall(r"^ARG SPARK_LINE=(\S+)$", (places.REPO / "Dockerfile").read_text(), re.MULTILINE)
    return str(line)


def others() -> list[str]:
    """All lines but the default one, oldest first."""
    found = (path.stem.removeprefix("spark-") for path in FOLDER.glob("spark-*.txt"))
    return sorted(set(found) - {default()}, key=lambda line: [int(part) for part in line.split(".")])


def chosen(tree: str) -> str:
    """The other line that a commit is tried on, by the hash of its tree: another commit may have another."""
    lines = others()
    return lines[int(tree, 16) % len(lines)]


def tree() -> str:
    """The hash of the last commit's tree."""
    return run("git", "-C", str(places.REPO), "rev-parse", "HEAD^{tree}").strip()


def python(line: str) -> Path:
    """The interpreter of a line. Its environment links to packages that are fetched once, and sees those of this one behind them.

    Raises:
        LabError: there is no such line.
    """
    if line == default():
        return Path(sys.executable)
    if line not in others():
        raise LabError(f"there is no line {line} of Spark here: LINE is one of {', '.join([default(), *others()])}")
    pins = pins_of(FOLDER / f"spark-{line}.txt")

    def fetch(folder: Path) -> None:
        pinned = [f"{name}=={version}" for name, version in pins.items()]
        with step(f"Python with Spark {line}"):
            run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", f"--target={folder}", *pinned)

    packages = parts.part(f"spark-{line}", (sorted(pins.items()), sys.version), fetch)
    folder = places.work() / "venvs" / packages.name
    own = folder / "lib" / Path(sysconfig.get_path("stdlib")).name / "site-packages"
    with places.lock(folder.with_name(f"{folder.name}.lock")):
        if not all((own / package.name).exists() for package in packages.iterdir()):  # else that of `.venv` would be found instead
            run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder))
            (own / "shared.pth").write_text(f"import site; site.addsitedir({str(Path(sysconfig.get_path('purelib')).resolve())!r})\n")
            for package in packages.iterdir():
                (own / package.name).symlink_to(package)
    return folder / "bin" / "python"


def with_jars(line: str) -> tuple[str, ...]:
    """The tests of sinks that need jars."""
    return tuple(f"{SINKS}/{name}" for name in WITH_JARS[line])


def submitted(line: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    """Arguments of spark-submit: the jars of the image, Delta's settings where it is among them, and more settings."""
    found = jars(line)
    settings = {**(DELTA if any(jar.name.startswith("delta-storage") for jar in found) else {}), **more}
    return " ".join(["--jars", ",".join(map(str, found)), *(f"--conf {name}={value}" for name, value in settings.items()), "pyspark-shell"])


def jars(line: str) -> list[Path]:
    """What the image adds to a line of Spark; our log store is among it where Delta is."""
    found = spark_jars.fetched(line)
    storage = [jar for jar in found if jar.name.startswith("delta-storage")]
    return [*found, spark_jars.log_store(line, [*storage, *_hadoop(line)])] if storage else found


def _hadoop(line: str) -> Iterator[Path]:
    """Hadoop's client, as PySpark brings it."""
    return next((python(line).parents[1] / "lib").glob("python*")).glob("site-packages/pyspark/jars/hadoop-client-api-*.jar")
