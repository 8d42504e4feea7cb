"""mypy over the packages, then over the tests and the examples.

Tests have no packages, so several files of them have one name. Each group is checked alone, with the folders its helpers are imported from.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from sluice_lab.places import REPO

PACKAGES = ("consumer", "operator", "lab", "tests")
# By group: the folder of its files, and the folders under tests/ that its imports begin at.
GROUPS = {
    "checkpoints": ("checkpoints",),
    "consumer": ("consumer",),
    "operator": ("operator", "sim/operator"),
    "sim/operator": ("sim", "sim/operator", "operator"),
    "sim": ("sim",),
    "contract/accounts": ("contract/accounts",),
    "contract/checkpoints": ("contract/checkpoints", "checkpoints"),
    "contract/checks": ("contract/checks",),
    "contract/kcl": ("contract/kcl",),
    "contract/kinesis": ("contract/kinesis", "consumer"),
    "contract/prometheus": ("contract/prometheus", "consumer", "operator", "sim/operator"),
    "contract/sinks": ("contract/sinks", "contract/spark", "consumer"),
    "contract/spark": ("contract/spark", "consumer"),
    "golden": ("golden", "checkpoints", "consumer"),
    "cluster": ("cluster", "operator"),
    "bench": ("bench", "consumer", "operator"),
    "lab": ("lab",),
    "kubectl": ("kubectl", "operator", "sim/operator"),
    "": (),
}


def main() -> int:
    """Exit code 1 if any group has an error."""
    failed = run(()).returncode != 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        codes = pool.map(group, grouped(tests()).items())
        failed |= any([*codes, examples()])
    print("tests and examples: no issues found" if not failed else "mypy found issues, see above")
    return int(failed)


def group(named: tuple[str, list[str]]) -> int:
    """Exit code of mypy over a group of tests."""
    name, files = named
    bases = [*PACKAGES, *(f"tests/{folder}" for folder in GROUPS[name])]
    found = run(("--config-file=tests/mypy.ini", *files), os.environ | {"MYPYPATH": os.pathsep.join(bases)})
    if found.returncode:
        print(f"-- tests/{name}", found.stdout, found.stderr, sep="\n")
    return found.returncode


def examples() -> int:
    """Exit code of mypy over the examples: their modules have names of their own."""
    folders = sorted({str(path.parent.relative_to(REPO)) for path in (REPO / "examples").rglob("*.py")})
    files = [str(path.relative_to(REPO)) for path in (REPO / "examples").rglob("*.py")]
    found = run(tuple(files), os.environ | {"MYPYPATH": os.pathsep.join([*PACKAGES, *folders])})
    if found.returncode:
        print("-- examples", found.stdout, found.stderr, sep="\n")
    return found.returncode


def tests() -> list[str]:
    """All Python files of the tests, from the root of the repository."""
    return sorted(str(path.relative_to(REPO)) for path in (REPO / "tests").rglob("*.py"))


def grouped(paths: list[str]) -> dict[str, list[str]]:
    """Files by the first group whose folder they are in."""
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for path in paths:
        groups[next(group for group in GROUPS if path.startswith(f"tests/{group}/" if group else "tests/"))].append(path)
    return groups


def run(arguments: tuple[str, ...], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Mypy at the root of the repository; what it says of the packages is printed as it comes."""
    command = (sys.executable, "-m", "mypy", *arguments)
    return subprocess.run(command, cwd=REPO, check=False, capture_output=bool(arguments), text=True, env=environment)


if __name__ == "__main__":
    sys.exit(main())
