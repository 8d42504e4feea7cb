"""Looks for a class on the class path of Spark's driver, without a JVM: names of files in jars."""

from __future__ import annotations

import os
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

# What else puts classes there; where they come from then, only Spark finds out.
UNKNOWN_SETTINGS = ("spark.jars.packages", "spark.jars.ivySettings", "spark.yarn.jars", "spark.yarn.archive", "spark.driver.userClassPathFirst")
UNKNOWN_VARIABLES = ("PYSPARK_SUBMIT_ARGS", "SPARK_DIST_CLASSPATH", "SPARK_CLASSPATH", "SPARK_SUBMIT_OPTS")
LIKELY = re.compile(r"hadoop|iceberg|delta|gcs|azure", re.IGNORECASE)
END, ENTRY = b"PK\x05\x06", b"PK\x01\x02"
END_BYTES = 22
LONGEST_END = END_BYTES + 0xFFFF  # with a comment
PROPERTY = re.compile(r"\s*([^#!\s=:]\S*?)\s*(?:[=:]|\s)\s*(\S.*?)\s*")


@dataclass(frozen=True)
class ClassPath:
    """Jars and folders of classes; `complete`: there is nothing else."""

    places: tuple[Path, ...]
    complete: bool = True

    def has(self, name: str) -> bool | None:
        """Whether a class is there, named with its package. None: it is nowhere in the known folders and jars, and there may be others."""
        file = f"{name.replace('.', '/')}.class"
        if any(_holds(place, file) for place in sorted(self.places, key=lambda place: not LIKELY.search(place.name))):
            return True
        return False if self.complete else None


def of_spark(spark_conf: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> ClassPath:
    """The class path of a driver that starts here.

    Args:
        spark_conf: settings of the session; they win over those of `spark-defaults.conf`.
        environment: of the driver.
    """
    home = Path(_find_spark_home())
    settings = _defaults(Path(environment.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf") | dict(spark_conf)
    named = [name for name in settings.get("spark.jars", "").split(",") if name]
    local = [Path(name.removeprefix("file://").removeprefix("file:")) for name in named if "://" not in name or name.startswith("file:")]
    extra = _expanded(settings.get("spark.driver.extraClassPath", "").split(os.pathsep))
    unknown = any(settings.get(name) for name in UNKNOWN_SETTINGS) or any(environment.get(name) for name in UNKNOWN_VARIABLES)
    return ClassPath((*(home / "jars").glob("*.jar"), *local, *extra), complete=not unknown and len(local) == len(named))


def _defaults(path: Path) -> dict[str, str]:
    """A file of Java properties, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {match[1]: match[2] for line in lines if (match := PROPERTY.fullmatch(line))}


def _expanded(entries: Iterable[str]) -> Iterator[Path]:
    for entry in filter(None, entries):
        yield from Path(entry[:-1]).glob("*.jar") if entry.endswith("/*") else (Path(entry),)


def _holds(place: Path, file: str) -> bool:
    if place.is_dir():
        return (place / file).is_file()
    try:
        listed = _directory(place)
        if listed is not None and file.encode() not in listed:
            return False
        with zipfile.ZipFile(place) as jar:
            return file in jar.NameToInfo
    except (OSError, zipfile.BadZipFile):
        return False


def _directory(jar: Path) -> bytes | None:
    """The bytes in which a jar lists its files, or None where they are not found so simply (ZIP64, no jar).

    `zipfile` makes an object of each file: a second for the jars of Spark, instead of a twentieth. Source: APPNOTE.TXT of PKWARE, 4.3.16.
    """
    with jar.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LONGEST_END))
        tail = file.read()
        at = tail.rfind(END)
        if at < 0 or len(tail) - at < END_BYTES:
            return None
        length, _ = struct.unpack_from("<II", tail, at + 12)
        begin = size - len(tail) + at - length
        if begin < 0:
            return None
        file.seek(begin)
        listed = file.read(length)
    return listed if listed.startswith(ENTRY) else None
