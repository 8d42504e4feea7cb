"""How the lab's programs end: a LabError is one line for a person, and exit code 1."""

import sys
from collections.abc import Callable

from sluice_lab.errors import LabError
from sluice_lab.steps import console


def run(main: Callable[[], None]) -> None:
    """Run a program; on a LabError print what to do, and end this process."""
    try:
        main()
    except LabError as error:
        console.print(f"[bold red]{type(error).__name__}[/]", end=": ")
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(1)
