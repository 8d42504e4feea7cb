"""The programs `sluice` and `kubectl-sluice`: KinesisConsumers of a cluster, checkpoint tables, and a consumer of your own, under one name.

This module imports no third party: the wheel installs both programs, whatever extras were asked for.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sluice_kubectl import INSTALL


def main() -> None:
    """Runs one command and ends the process with its exit code."""
    name = "kubectl sluice" if Path(sys.argv[0]).name.startswith("kubectl-") else "sluice"
    try:
        from sluice_kubectl.cli.group import program  # noqa: PLC0415 - needs click, which may not be installed
    except ModuleNotFoundError as error:
        sys.exit(f"{name}: the Python package {error.name} is not installed; next: install Sluice with its extra kubectl or checkpoints ({INSTALL})")
    program.main(prog_name=name)
