"""Whether there is a Java that Spark can run on, found as Spark's own scripts find it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sluice_checkpoints.errors import Refused

HOME = "JAVA_HOME"
TRIED = (17, 21)  # docs/support.md
ADVICE = "install Java 17 or 21, or set JAVA_HOME to where it is"
VERSION = re.compile(r'version "(?:1\.)?(\d+)')
SECONDS = 10.0
FIND = '. "$1" >/dev/null; exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version'  # a site may set JAVA_HOME in spark-env.sh


def check(environment: Mapping[str, str]) -> int:
    """The major version of the Java that Spark would start.

    Raises:
        Refused: there is none, or it is too old for Spark.
    """
    spark = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (spark and f"{spark}/conf")
    return _version(environment.get(HOME), environment.get("PATH", os.defpath), f"{folder}/spark-env.sh" if folder else "")


@cache
def _version(home: str | None, path: str, spark_env: str) -> int:
    """Once a process: a pool starts many consumers."""
    program = f"{home}/bin/java" if home else "java"
    command = ["bash", "-c", FIND, "bash", spark_env] if Path(spark_env).is_file() else [program, "-version"]
    try:
        asked = subprocess.run(
            command,
            env=os.environ | {"PATH": path, HOME: home or ""},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Refused(f"Spark needs Java: `{program} -version` does not end within {SECONDS:g} s; {ADVICE}") from error
    except OSError as error:
        where = f"{HOME} is {home}, and there is no bin/java in it" if home else f"no java on the PATH, and {HOME} is not set"
        raise Refused(f"Spark needs Java: {where} ({error.strerror}); {ADVICE}") from error
    version = VERSION.search(asked.stderr)
    if version is None:
        words = " ".join(asked.stderr[:300].split())
        raise Refused(f"Spark needs Java: `{program} -version` ends with {asked.returncode} and names no version ({words!r}); {ADVICE}")
    if (number := int(version[1])) < TRIED[0]:
        raise Refused(f"Spark needs Java {TRIED[0]} or later, and `{program}` is Java {number}; {ADVICE}")
    return number
