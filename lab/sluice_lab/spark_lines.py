"""`python -m sluice_lab.spark_lines LINE|one|rest|lake`: what depends on Spark, on another line than the default one, or with the image's jars.

With a line (`make test-spark LINE=4.3`) all of it. `one` (`make test`) is a small part on one other line, which the commit chooses. `rest` (`make
test-more`) is the sinks that need the image's jars, on the default line. `lake` (`make test-lake`) is what the sinks
are tried with for long, and the examples, on the line of the image. The default line is that of `pyspark` in constraints/all.txt.
constraints/spark-<line>.txt pins what differs from there. A line's environment holds that alone; the rest is `.venv`'s.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sluice_consumer.sinks import delta_table
from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import parts, spark_jars
from sluice_lab.machine.processes import run
from sluice_lab.steps import console, step

FOLDER = places.REPO / "constraints"
PIN = re.compile(r"^([\w.-]+)==(\S+)$", re.MULTILINE)
DEMO, SINKS, EXAMPLES = "tests/lab/test_demo_local.py", "tests/contract/sinks", "examples"
QUICK, LONG = "not cluster and not lake", "lake"
MATRIX = "test_matrix.py"
WITH_JARS = {  # of SINKS; the other files need no jar, and the default line runs them
    "4.1": (
        MATRIX,
        "test_iceberg_table.py",
        "test_iceberg_owner.py",
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
DELTA = {**delta_table.SETTINGS, **delta_table.FASTER, "spark.delta.logStore.s3a.impl": spark_jars.LOG_STORE_CLASS}
# A query of these tests runs once: to compile it is a fifth of the CPU, and gives nothing. `lake` runs the same sinks as the image does, compiled.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}

ON_DEFAULT = ("test_delta_owner.py", "test_rollback.py")  # what a table's owner does: `rest` tries it, with the jars of the default line

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
    with places.lock(folder.with_name(f"{folder.name}.lock")):
        if not (folder / "bin" / "python").exists():
            run(sys.executable, "-m", "venv", "--without-pip", str(folder))
            own, shared = next((folder / "lib").glob("python*")) / "site-packages", Path(sysconfig.get_path("purelib")).resolve()
            (own / "shared.pth").write_text(f"import site; site.addsitedir({str(shared)!r})\n")
            for package in packages.iterdir():
                (own / package.name).symlink_to(package)
    return folder / "bin" / "python"


@dataclass(frozen=True)
class LineRun:
    """A run of pytest on a line of Spark, with more in the environment. `workers` run side by side; 0: the tests are of one group.

    `part` is in its name, if a line has several runs with jars.
    """

    line: str
    files: tuple[str, ...]
    more: Mapping[str, str] = field(default_factory=dict)
    marked: str = QUICK
    workers: int = 0
    part: str = ""

    @property
    def name(self) -> str:
        """Of what it writes its durations to."""
        return f"spark-{self.line}{'-jars' if self.more else ''}{self.part}"

    def command(self) -> list[str]:
        """Its words. Durations go to the folder SLUICE_DURATIONS, if it is set."""
        folder = os.environ.get("SLUICE_DURATIONS")
        noted = [f"--junitxml={folder}/{self.name}.xml"] if folder else []
        beside = ("-n", str(self.workers), "--dist", "loadscope", "--no-loadscope-reorder") if self.workers else ()
        return [str(python(self.line)), "-m", "pytest", "-m", self.marked, *beside, *noted, *self.files]


def run_tests(tests: LineRun, command: Sequence[str], *, shown: bool = True) -> int:
    """Pytest's exit code; its output as it comes, or whole at the end."""
    paths = os.pathsep.join(str(places.REPO / part) for part in ("consumer", "operator", "lab"))
    environment = {**os.environ, "PYTHONPATH": paths, "SLUICE_PART": "1", **tests.more}
    how: dict[str, Any] = {} if shown else {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, cwd=places.REPO, env=environment, check=False, **how)
    if not shown:
        console.rule(tests.name, align="left")
        print(done.stdout, flush=True)
    return done.returncode


def all_of(line: str) -> int:
    """The first exit code that is not 0, of all that depends on Spark, on a line."""
    console.rule(f"Spark {line}", align="left")
    codes = [run_tests(run, run.command()) for run in (LineRun(line, ALL, workers=_workers()), with_jars(line))]
    say_left(line, "what does not depend on Spark, and the cluster (`make test` and `make test-more` run them on the default line)")
    return next((code for code in codes if code), 0)


def two_at_a_time(runs: Sequence[LineRun]) -> int:
    """The first exit code that is not 0. Each has a process that does most of the work, and this machine has two cores."""
    commands = [run.command() for run in runs]  # makes what is missing, one after the other, with a line for each
    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(partial(run_tests, shown=False), runs, commands))
    return next((code for code in codes if code), 0)


def with_jars(line: str) -> LineRun:
    """The tests of sinks that need jars."""
    return LineRun(line, tuple(f"{SINKS}/{name}" for name in WITH_JARS[line]), {"PYSPARK_SUBMIT_ARGS": submitted(line, INTERPRETED)})


def halves(jars: LineRun) -> list[LineRun]:
    """The same in two runs: most of its time is one file's, and a run has one session of Spark."""
    first = tuple(name for name in jars.files if name.endswith(MATRIX))
    rest = tuple(name for name in jars.files if name not in first)
    return [replace(jars, files=first, part="-matrix"), replace(jars, files=rest)]


def small(line: str) -> list[LineRun]:
    """A small part, and the tests of sinks that need jars, but for those that take longest."""
    jars = with_jars(line)
    return [LineRun(line, SMALL, workers=2), replace(jars, files=tuple(name for name in jars.files if not name.endswith(ON_DEFAULT)))]


def say_left(line: str, left: str) -> None:
    """What is not tried on a line."""
    console.print(f"NOT RUN on Spark {line}: {left}; the sinks under kills and outages (`make test-lake`)", soft_wrap=True)


def one() -> int:
    """The small part on the line that the commit chooses."""
    line = chosen(tree())
    console.print(f"Spark {line} is this commit's other line; another commit may have another", soft_wrap=True)
    code = two_at_a_time(small(line))
    say_left(line, f"most of the tests with Spark (`make test-spark LINE={line}` runs them)")
    return code


def rest() -> int:
    """The sinks with the image's jars on the default line. A commit tries one other line, and `one` has done that."""
    code = two_at_a_time(halves(with_jars(default())))
    for line in others():
        if line != chosen(tree()):
            console.print(f"NOT RUN: Spark {line}, which is other commits' line (`make test-spark LINE={line}`)", soft_wrap=True)
    return code


def lake() -> int:
    """The first exit code that is not 0, of what the sinks are tried with for long, and of the examples."""
    line, workers = image_line(), _workers()
    runs = (LineRun(line, (SINKS,), {"PYSPARK_SUBMIT_ARGS": submitted(line)}, LONG, workers), LineRun(line, (EXAMPLES,), {}, LONG, workers))
    codes = [run_tests(run, run.command()) for run in runs]
    return next((code for code in codes if code), 0)


def _workers() -> int:
    return int(os.environ.get("WORKERS", "4"))


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


PARTS = {"one": one, "rest": rest, "lake": lake}


def main(part: str) -> int:
    """Runs a part, or all of a line; the first exit code that is not 0."""
    try:
        if part in PARTS:
            return PARTS[part]()
        return all_of(part)
    except LabError as error:
        console.print(str(error), style="bold red", soft_wrap=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
