"""`python -m sluice_consumer redrive`: what a person sees of a redrive (docs/dead-letters.md, "Redrive").

The program that needs Spark is another process (`redrive`): what `process` prints does not mix with the result.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from rich.markup import escape

from sluice_checkpoints.cli.guard import guarded
from sluice_checkpoints.cli.report import Output
from sluice_checkpoints.errors import SluiceError
from sluice_checkpoints.names import counted
from sluice_checkpoints.protocol.rows import Item


def run(arguments: Sequence[str], *, as_json: bool) -> int:
    """Redrives, prints what came of it, and returns the exit code. `arguments`: those of the program."""
    output = Output(as_json=as_json)
    return guarded(output, lambda: _redrive(arguments, output), terminal=False)


def _redrive(arguments: Sequence[str], output: Output) -> None:
    """Runs the program that gives dead letters to `process`; it needs Spark.

    Raises:
        RedriveFailed: it ended otherwise than with 0; it has said why.
    """
    command = [sys.executable, "-m", "sluice_consumer.redrive.redrive", *arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        raise RedriveFailed(ended.returncode)
    result: Item = json.loads(ended.stdout.strip().rpartition("\n")[2])
    if output.as_json:
        output.document(result)
    elif "batch" not in result:
        output.out.print(f"nothing to redrive{_waiting(result)}", highlight=False)
    else:
        count = counted(result["redriven"], "letter")
        output.out.print(f"batch {result['batch']} of {result['consumer']} is {result['ended']}: {count} redriven{_waiting(result)}", highlight=False)
        for name in result["rejected"]:
            output.out.print(f"rejected again, and still a dead letter: {escape(name)}", highlight=False)


class RedriveFailed(SluiceError):
    """The program that redrives ended with this exit code; what was wrong is on its standard error."""

    def __init__(self, code: int) -> None:
        super().__init__("the dead letters were not redriven; the lines above say why")
        self.exit_code = code


def _waiting(result: Item) -> str:
    return f"; {counted(result['pending'], 'letter')} left out: their batches are not known to be committed" if result.get("pending") else ""
