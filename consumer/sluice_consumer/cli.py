"""The programs `sluice` and `kubectl-sluice`: the commands of `python -m sluice_checkpoints`, and a consumer's, under one name.

They add nothing of their own. What is not installed is left out, and the help says how to get it. This module imports no third party by itself:
the wheel installs both programs, whatever extras were asked for.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

DISTRIBUTION = "sluice-kinesis"
INSTALL = 'README.md, "Without Kubernetes"'
HELP = "Consumers of Amazon Kinesis on PySpark that never lose their place in the stream: look at checkpoint tables, take them over, run a consumer."


def main() -> None:
    """Runs one command and ends the process with its exit code."""
    name = "kubectl sluice" if Path(sys.argv[0]).name.startswith("kubectl-") else "sluice"
    try:
        program = commands()
    except ModuleNotFoundError as error:
        sys.exit(f"{name}: the Python package {error.name} is not installed; next: install Sluice with its extra checkpoints ({INSTALL})")
    program.main(prog_name=name)


def commands() -> click.Group:
    """All commands whose needs are installed.

    Raises:
        ModuleNotFoundError: not even those of the extra `checkpoints` are.
    """
    import click  # noqa: PLC0415 - may not be installed

    from sluice_checkpoints.cli.main import main as checkpoints  # noqa: PLC0415 - as click

    found, epilog = dict(checkpoints.commands), None
    try:
        from sluice_consumer.__main__ import dev, run  # noqa: PLC0415 - as click
    except ModuleNotFoundError as error:
        epilog = f"Not here: run and dev. They need {error.name} and more: install Sluice with its extra consumer ({INSTALL})"
    else:
        found |= {"run": run, "dev": dev}
    program = click.Group("sluice", found, help=HELP, epilog=epilog, context_settings=checkpoints.context_settings)
    return click.version_option(package_name=DISTRIBUTION, message="%(version)s")(program)
