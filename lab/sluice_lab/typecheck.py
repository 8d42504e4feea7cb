"""mypy over the packages, then over the tests and the examples.

Tests have no packages, so several files of them have one name. Each group is checked alone, with the folders its helpers are imported from. What mypy
remembers stays in the checkout: it knows a file by size and second, which files of two checkouts share. Each of the two tracks of groups has a
memory of its own.
"""

import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from sluice_lab.places import REPO

PACKAGES = ("consumer", "operator", "lab", "tests")
TRACKS = 2
# By group: the folder of its files, and the folders that its imports begin at.
GROUPS = {
    "tests/checkpoints": ("tests/checkpoints",),
    "tests/consumer": ("tests/consumer",),
    "tests/operator": ("tests/operator", "tests/sim/operator"),
    "tests/sim/operator": ("tests/sim", "tests/sim/operator", "tests/operator"),
    "tests/sim": ("tests/sim",),
    "tests/contract/accounts": ("tests/contract/accounts",),
    "tests/contract/checkpoints": ("tests/contract/checkpoints", "tests/checkpoints"),
    "tests/contract/checks": ("tests/contract/checks",),
    "tests/contract/kcl": ("tests/contract/kcl",),
    "tests/contract/kinesis": ("tests/contract/kinesis", "tests/consumer"),
    "tests/contract/prometheus": ("tests/contract/prometheus", "tests/consumer", "tests/operator", "tests/sim/operator"),
    "tests/contract/sinks": ("tests/contract/sinks", "tests/contract/spark", "tests/consumer"),
    "tests/contract/spark": ("tests/contract/spark", "tests/consumer"),
    "tests/golden": ("tests/golden", "tests/checkpoints", "tests/consumer"),
    "tests/cluster": ("tests/cluster", "tests/operator"),
    "bench": ("bench",),
    "tests/bench": ("bench", "tests/consumer", "tests/operator"),
    "tests/lab": ("tests/lab",),
    "tests/kubectl": ("tests/kubectl", "tests/operator", "tests/sim/operator"),
    "tests": (),
}


Group = tuple[str, list[str]]


def main() -> int:
    """Exit code 1 if any group has an error."""
    failed = mypy("packages", ["--num-workers=2"])
    groups = list(grouped(tests()).items())
    with ThreadPoolExecutor(TRACKS) as pool:
        failed |= any(list(pool.map(track, range(TRACKS), (groups[of::TRACKS] for of in range(TRACKS)))))
    failed |= examples()
    print("tests and examples: no issues found" if not failed else "mypy found issues, see above")
    return int(failed)


def track(number: int, groups: Iterable[Group]) -> bool:
    """Whether mypy finds an error in one of these groups of tests."""
    how = "--config-file=tests/mypy.ini"
    found = [mypy(f"tests-{number}", [how, *files], *GROUPS[name]) for name, files in groups]
    return any(found)


def examples() -> bool:
    """Whether mypy finds an error in the examples: their modules have names of their own."""
    files = sorted(str(path.relative_to(REPO)) for path in (REPO / "examples").rglob("*.py"))
    return mypy("packages", files, *sorted({name.rpartition("/")[0] for name in files}))


def tests() -> list[str]:
    """All Python files of the tests and benches, from the root of the repository."""
    return sorted(str(path.relative_to(REPO)) for folder in ("tests", "bench") for path in (REPO / folder).rglob("*.py"))


def grouped(paths: list[str]) -> dict[str, list[str]]:
    """Files by the first group whose folder they are in."""
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for path in paths:
        groups[next(group for group in GROUPS if path.startswith(f"{group}/"))].append(path)
    return groups


def mypy(memory: str, arguments: Iterable[str], *bases: str) -> bool:
    """Whether it finds an error, which is printed. `memory` is a folder of its cache; imports begin at the packages and at `bases`."""
    command = (sys.executable, "-m", "mypy", f"--cache-dir=.mypy_cache/{memory}", *arguments)
    environment = os.environ | {"MYPYPATH": os.pathsep.join([*PACKAGES, *bases])}
    done = subprocess.run(command, cwd=REPO, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    if done.returncode:
        print(f"-- {' '.join(bases) or 'packages'}", done.stdout, sep="\n")
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
