"""`python -m sluice_lab.lanes TARGET`: the tests of `make test`, `make test-cluster` and others, in lanes.

A lane is one run of pytest. Tracks run side by side, the lanes of a track one after the other, and stages too. The first track prints as it runs. Of
the others the failures are printed as they come, and all goes to .work/durations/TARGET/LANE.log. In CI, tests that failed run once more, alone.
Those that pass then are named as FLAKY in the last lines, and the target succeeds. The simulations never run again: their failures are no accidents.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

from sluice_lab import durations, places, spark_lines
from sluice_lab.errors import LabError
from sluice_lab.machine import parts, processes
from sluice_lab.steps import console

ROOT = places.REPO  # where pytest starts
TESTS = ROOT / "tests"
SIMULATIONS = "tests/sim/"
QUICK = "not cluster and not lake"
PATIENT = ("-o", "faulthandler_timeout=2400")  # seconds for one test that waits for a cluster, or beside other lanes
ENDS = "ends"  # file of a target's last lines, which .ci/run repeats
FAILED = re.compile(r"(FAILED|ERROR) .* \([a-z?]+, [0-9]+ s\): ")  # a line of tests/failures_at_once.py


@dataclass(frozen=True)
class Lane:
    """One run of pytest.

    Attributes:
        marked: pytest's expression of marks.
        files: what is collected; nothing: all tests.
        workers: processes that share the tests (tests/side_by_side.py deals them); 0: this one alone.
        more: of the environment.
        line: line of Spark; "": that of `.venv`.
        asked: name and inputs of a part that notes that it has passed.
        yields: it runs with `nice`, so that tests of a cluster beside it are not starved.
    """

    name: str
    marked: str
    files: tuple[str, ...] = ()
    workers: int = 0
    more: Mapping[str, str] = field(default_factory=dict)
    line: str = ""
    asked: tuple[str, str] | None = None
    yields: bool = True

    def command(self, folder: Path, alone: Sequence[str] = ()) -> list[str]:
        """Its words. With `alone`: of these tests only, one after the other."""
        python = spark_lines.python(self.line or spark_lines.default())
        kept = ("-o", f"cache_dir={folder / self.name}.cache")
        if alone:
            how = (f"--junitxml={folder / self.name}.alone", *alone)
        else:
            beside = ("-n", str(self.workers), "--dist", "loadscope", "--no-loadscope-reorder") if self.workers else ()
            how = (*beside, f"--junitxml={folder / self.name}.xml", *self.files)
        return [*(("nice",) if self.yields else ()), str(python), "-m", "pytest", "-m", self.marked, *PATIENT, *kept, *how]

    def environment(self) -> dict[str, str]:
        """Of this process and of the lane."""
        paths = os.pathsep.join(str(places.REPO / part) for part in ("consumer", "operator", "lab"))
        return {**os.environ, "SLUICE_PART": "1", **({"PYTHONPATH": paths} if self.line else {}), **self.more}


Track = tuple[Lane, ...]
Stage = tuple[Track, ...]


@cache
def naming(mark: str) -> tuple[str, ...]:
    """Files that name a mark: to collect all takes half a minute. tests/left_out.py holds each test to it."""
    found = {str(path.relative_to(places.REPO)) for path in TESTS.rglob("test_*.py") if f"mark.{mark}" in path.read_text()}
    suspects = tomllib.loads((TESTS / "suspects.toml").read_text()) if mark == "slow" else {}
    return tuple(sorted(found | {name.partition("::")[0] for name in suspects}))


def test() -> list[Stage]:
    """What needs neither a cluster nor what Go builds."""
    return [((Lane("tests", "not built and not cluster and not slow and not lake", workers=_workers(4)),),)]


def test_cluster() -> list[Stage]:
    """What needs them, then what the files of this commit ask for."""
    nodes = Lane("nodes", "cluster and not slow", naming("cluster"), more=COMPLETE, yields=False)
    built = Lane("built", "built and not cluster and not slow and not lake", naming("built"), _workers(2), COMPLETE)
    touched = tuple((lane,) for lane in asked_for())
    return [((nodes,), (built,)), *([touched] if touched else [])]


def test_more() -> list[Stage]:
    """What is long."""
    slow = Lane("slow", "slow and not cluster and not lake", naming("slow"), _workers(3))
    timed, second, gitops = (tuple(f"tests/cluster/test_{name}.py" for name in names) for names in (TIMED, SECOND, GITOPS))
    rest = tuple(sorted({*naming("cluster")} & {*naming("slow")} - {*timed, *second, *gitops}))
    simulations = Lane("simulations", "not slow", DRAWN, _workers(2), {"SLUICE_SIM_TIMES": "7"})
    other = other_line()
    tracks = (
        (slow, simulations),
        (
            *jars(spark_lines.default()),
            other,
            *jars(other.line),
            Lane("cluster-more", "slow and cluster", second, more={"SLUICE_LANE": "-more"}, yields=False),
        ),
        (Lane("cluster", "slow and cluster", rest, yields=False),),
    )
    return [tracks, ((Lane("cluster-timed", "slow and cluster", timed, yields=False),),)]


COMPLETE = {"SLUICE_COMPLETE": "yes"}
DRAWN = ("tests/sim", "tests/checkpoints/migrate/test_plan_of_missing_rows.py")
"""These draw more examples in `make test-more`."""
SECOND = ("disruptions", "examples", "pool", "release", "start_eks", "upgrade")
"""Over a cluster of its own, once the sinks are through."""
GITOPS = ("argocd", "flux")
"""`make test-gitops` builds the two, which takes long, and runs these."""
TIMED = ("autoscale", "availability", "failover", "rollout", "until")
"""These hold to a number of seconds or compare speeds, so nothing else may take the cores."""


def jars(line: str) -> list[Lane]:
    """The sinks with the image's jars. A run has one session of Spark, and most of its time is one file's, so that is a lane of its own."""
    complete = {"SLUICE_COMPLETE": "jars"} if line == spark_lines.default() else {}
    more = {**complete, "PYSPARK_SUBMIT_ARGS": spark_lines.submitted(line, spark_lines.INTERPRETED)}
    files = spark_lines.with_jars(line)
    matrix = tuple(name for name in files if name.endswith(spark_lines.MATRIX))
    halves = {f"spark-{line}-matrix": matrix, f"spark-{line}-jars": tuple(name for name in files if name not in matrix)}
    return [Lane(name, QUICK, part, more=more, line=line) for name, part in halves.items() if part]


def other_line() -> Lane:
    """A part of what depends on Spark, on the other line that the commit chooses."""
    line = spark_lines.chosen(spark_lines.tree())
    return Lane(f"spark-{line}", QUICK, spark_lines.SMALL, 2, line=line)


def spark(line: str) -> list[Stage]:
    """All that depends on Spark, on a line."""
    return [((Lane(f"spark-{line}", QUICK, spark_lines.ALL, _workers(4), line=line),),), tuple((lane,) for lane in jars(line))]


def lake() -> list[Stage]:
    """What the sinks are tried with for long, and the examples, on the line of the image."""
    line = spark_lines.image_line()
    submitted = {"PYSPARK_SUBMIT_ARGS": spark_lines.submitted(line)}
    sinks = Lane("sinks", "lake", naming("lake"), _workers(2), submitted, line)
    return [((sinks,),), ((Lane("examples", "lake", ("examples",), _workers(2), line=line),),)]


TOUCHED = {
    "chart": ("charts", "tests/operator/helm"),
    "jars": ("consumer/sluice_consumer/sinks", "consumer/image", "constraints", "Dockerfile", "tests/contract/sinks"),
    "line": ("consumer/sluice_consumer/spark", "consumer/sluice_consumer/streaming", "constraints", "tests/contract/spark"),
}
"""What `make test-cluster` runs beside its own tests when these have changed."""


def asked_for() -> list[Lane]:
    """The lanes that have not passed on this machine with the files that ask for them."""
    chart = Lane("chart", "built and slow", ("tests/operator/helm",), 2, COMPLETE)
    found = {"chart": [chart], "jars": jars(spark_lines.default()), "line": [other_line()]}
    asked = {name: (f"passed-{name}", " ".join((_digest(TOUCHED[name]), *(lane.name for lane in made)))) for name, made in found.items()}
    return [replace(lane, asked=asked[name]) for name, made in found.items() if not parts.place(*asked[name]).is_dir() for lane in made]


def _digest(paths: Sequence[str]) -> str:
    names = processes.run("git", "-C", str(places.REPO), "ls-files", "--", *paths).splitlines()
    return parts.digest((path for name in names if (path := places.REPO / name).exists()), places.REPO)


TARGETS: dict[str, Callable[[], list[Stage]]] = {
    "test": test,
    "test-cluster": test_cluster,
    "test-more": test_more,
    "test-lake": lake,
    **{f"test-spark-{line}": partial(spark, line) for line in spark_lines.WITH_JARS},
}


def _workers(most: int) -> int:
    return int(os.environ.get("WORKERS", most))


def run(lane: Lane, folder: Path, *, shown: bool) -> int:
    """Pytest's exit code."""
    command = lane.command(folder)
    log = folder / f"{lane.name}.log"
    with (
        log.open("w", buffering=1) as kept,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=lane.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        for line in process.stdout or ():
            kept.write(line)
            if shown or FAILED.match(line):
                print(line, end="", flush=True)
    return process.returncode


def run_all(stages: Iterable[Stage], folder: Path) -> list[tuple[Lane, int]]:
    """Each lane with its exit code. A lane that fails stops none of the others."""
    done: list[tuple[Lane, int]] = []

    def follow(track: Track) -> list[tuple[Lane, int]]:
        return [(lane, run(lane, folder, shown=lane in shown)) for lane in track]

    for stage in stages:
        shown = stage[0]
        with ThreadPoolExecutor(len(stage)) as pool:
            done += [each for found in pool.map(follow, stage) for each in found]
        for track in stage[1:]:
            for lane in track:
                console.rule(lane.name, align="left")
                print((folder / f"{lane.name}.log").read_text(), flush=True)
    return done


def failed_tests(lane: Lane, folder: Path) -> list[str]:
    """By pytest's cache."""
    path = folder / f"{lane.name}.cache" / "v" / "cache" / "lastfailed"
    return sorted(json.loads(path.read_text())) if path.exists() else []


def again(lane: Lane, code: int, folder: Path) -> tuple[list[str], list[str]]:
    """The tests of a lane that failed, and those that passed when they ran once more, alone. That is in CI only, and never with a simulation."""
    names = failed_tests(lane, folder)
    if code != 1 or not names:
        return [*names, f"{lane.name}: pytest ended with {code}"], []
    if not os.environ.get("CI") or any(name.startswith(SIMULATIONS) for name in names):
        return names, []
    console.rule(f"{lane.name}: once more, alone", align="left")
    code = subprocess.run(lane.command(folder, alone=names), cwd=ROOT, env=lane.environment(), check=False).returncode
    if code == 0 and durations.read(folder / f"{lane.name}.alone").passed == len(names):
        return [], names
    failed = failed_tests(lane, folder) or names
    return failed, sorted({*names} - {*failed})


def main(target: str) -> int:
    """Run a target's tests, and print what they took; exit code 1 if a test failed."""
    folder = places.emptied(places.work() / "durations" / target)
    try:
        done = run_all(TARGETS[target](), folder)
    except LabError as error:
        console.print(str(error), style="bold red", soft_wrap=True)
        return 1
    judged = [(lane, *again(lane, code, folder)) for lane, code in done if code]
    broken = [lane for lane, failed, _ in judged if failed]
    for name, inputs in {lane.asked for lane, _ in done if lane.asked} - {lane.asked for lane in broken}:
        parts.part(name, inputs, lambda _: None)
    durations.main(target)
    ends = [f"FAILED: {name}" for _, failed, _ in judged for name in failed]
    ends += [f"FLAKY: {name} failed, then passed alone: name it in tests/suspects.toml" for _, _, flaky in judged for name in flaky]
    (folder / ENDS).write_text("".join(f"{line}\n" for line in ends))
    print((folder / ENDS).read_text(), end="", flush=True)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
