"""A home for Spark without the archives of its Python, which its workers would read in every task.

`pip install pyspark` brings `python/lib/pyspark.zip` and Spark's JVM puts it in front of the path of every Python worker. Spark 4.1 asks Python in
each task, and twice while it plans, to forget what it knows of its path (`importlib.invalidate_caches`). Python then reads the archive's directory
again. The package itself is beside it, so nothing is missed. The image has no such archives (Dockerfile).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import site
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

ARCHIVES = "python"  # the only entry of the package that is left out


def lean(environment: Mapping[str, str]) -> dict[str, str]:
    """The variable SPARK_HOME for a JVM that is started from here; nothing where Spark's home, or its Python, is somebody's choice.

    The home is a folder of links in the user's cache (`XDG_CACHE_HOME`), made once for an installation of PySpark.
    """
    if "SPARK_HOME" in environment or environment.get("PYSPARK_PYTHON", sys.executable) != sys.executable:
        return {}
    package = _package(environment)
    if package is None or not list((package / ARCHIVES / "lib").glob("*.zip")):
        return {}
    with contextlib.suppress(OSError, RuntimeError):  # a cache that cannot be written, or a user without a home: Spark works as it is
        cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice"
        return {"SPARK_HOME": str(_linked(package, cache))}
    return {}


def _package(environment: Mapping[str, str]) -> Path | None:
    """Where PySpark is, if workers find it there without help: they have neither the archive nor what this program did to its path."""
    package = Path(pyspark.__file__).parent
    theirs = {*site.getsitepackages(), site.getusersitepackages(), *environment.get("PYTHONPATH", "").split(os.pathsep)}
    return package if (package / "jars").is_dir() and str(package.parent) in theirs else None


def _linked(package: Path, cache: Path) -> Path:
    """A folder with a link to each entry of the package. Its name says which entries of which package: another one is never changed."""
    entries = sorted(entry for entry in package.iterdir() if entry.name not in {ARCHIVES, "__pycache__"})
    digest = hashlib.sha256("\n".join(map(str, entries)).encode()).hexdigest()[:16]
    home = cache / f"spark-home-{digest}"
    if home.is_dir():
        _mend(home, entries)
    else:
        cache.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{home.name}-", dir=cache))
        for entry in entries:
            (made / entry.name).symlink_to(entry)
        try:
            made.rename(home)
        except OSError:  # another driver was faster
            shutil.rmtree(made)
            home.stat()
    return home


def _mend(home: Path, entries: list[Path]) -> None:
    for entry in entries:
        with contextlib.suppress(FileExistsError):
            (home / entry.name).symlink_to(entry)
