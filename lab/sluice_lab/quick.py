"""`python -m sluice_lab.quick [COMMIT]`: lint, and the tests of the rooms in which files changed since a commit (`make quick`).

Tests mirror the rooms, so a changed file names its tests. `make test` and `make test-cluster` run those that need Spark, an API server or a cluster.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from sluice_lab import places
from sluice_lab.machine.processes import run

PACKAGES = {
    "consumer/sluice_checkpoints": "tests/checkpoints",
    "consumer/sluice_consumer": "tests/consumer",
    "operator/sluice_operator": "tests/operator",
    "operator/sluice_kubectl": "tests/kubectl",
}
ALWAYS = ("tests/test_layout.py", "tests/test_documents.py")


def tests_of(changed: Iterable[str], root: Path) -> list[str]:
    """The existing folders and files of the changed files' tests."""
    found = {test for name in changed if (test := _tests_of(PurePosixPath(name), root))}
    return [*ALWAYS, *sorted(found - set(ALWAYS))]


def _tests_of(path: PurePosixPath, root: Path) -> str | None:
    if path.parts[0] == "tests":
        return str(path) if path.name.startswith("test_") and (root / path).exists() else None
    if path.parts[0] == "lab":
        return "tests/lab"
    for package, tests in PACKAGES.items():
        if path.is_relative_to(package):
            room = path.relative_to(package).parts[0]
            own = f"{tests}/{room}" if (root / tests / room).is_dir() else f"{tests}/test_{path.stem}.py"
            return own if (root / own).exists() else None
    return "tests/operator/helm" if path.parts[0] == "charts" and (root / "tests/operator/helm").is_dir() else None


def changed_since(commit: str) -> list[str]:
    """Files that differ from a commit; new and deleted ones too."""
    git = ("git", "-C", str(places.REPO))
    listed = [(*git, "diff", "--name-only", commit), (*git, "ls-files", "--others", "--exclude-standard")]
    return sorted({name for command in listed for name in run(*command).split()})


def main(commit: str = "HEAD") -> int:
    """Run lint and tests; returns the first exit code that is not 0."""
    changed = changed_since(commit)
    sources = [name for name in changed if name.endswith(".py") and (places.REPO / name).exists()]
    chosen = ("-m", "not cluster and not built and not spark", "-q")
    commands = [("ruff", "check", *sources), ("ruff", "format", "--check", *sources)] if sources else []
    commands += [("python", "-m", "sluice_lab.typecheck"), ("pytest", *chosen, *tests_of(changed, places.REPO))]
    for program, *arguments in commands:
        code = subprocess.run([str(Path(sys.executable).with_name(program)), *arguments], cwd=places.REPO, check=False).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
