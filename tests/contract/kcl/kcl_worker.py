"""A worker of the real KCL (KclWorker.java), as a process."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from patience import PATIENCE

HERE = Path(__file__).parent
REGION = "us-east-1"


@contextmanager
def kcl(
    jars: Path, stream: str, application: str, endpoints: Mapping[str, str], log: Path, classes: str = ""
) -> Iterator[Callable[[set[str]], list[str]]]:
    """The real KCL, with a folder of classes; gives a function that waits for some lines and returns all that came so far."""
    command = ["java", "-cp", f"{jars}/*{os.pathsep}{classes}", str(HERE / "KclWorker.java"), stream, application]
    lines: list[str] = []
    came = threading.Condition()

    def collect(program: subprocess.Popen[str]) -> None:
        assert program.stdout is not None
        for line in program.stdout:
            with came:
                lines.append(line.strip())
                came.notify_all()

    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with log.open("w") as errors, subprocess.Popen(command, env={**os.environ, **endpoints}, stderr=errors, **pipes) as program:
        reader = threading.Thread(target=collect, args=(program,))
        reader.start()

        def until(wanted: set[str]) -> list[str]:
            with came:
                assert came.wait_for(lambda: wanted <= set(lines), PATIENCE), f"{wanted - set(lines)} never came; {log.read_text()[-2000:]}"
                return list(lines)

        try:
            yield until
        finally:
            program.kill()
            reader.join()
