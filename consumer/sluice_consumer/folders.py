"""Folders that appear as a whole: written under a name of their own, then renamed.

Only file systems whose rename is one step, and refuses a target that exists, can do this. Which ones those are is a list (`of`).
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import uuid
from collections.abc import Callable
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused

log = logging.getLogger(__name__)
ATOMIC = ("file", "hdfs")
"""Schemes of the file systems that `of` knows."""


class Folders(Protocol):
    """A file system with an atomic rename."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        ...

    def move(self, source: str, target: str) -> None:
        """Renames a folder in one step; another folder that holds something is never replaced, nor moved into.

        Raises:
            OSError: the target exists, or the source does not, or the file system failed.
        """
        ...

    def delete(self, path: str) -> None:
        """Deletes a folder, if it exists. What cannot be deleted stays."""
        ...


def publish(folders: Folders, home: str, name: str, write: Callable[[str], None]) -> None:
    """Makes `<home>/<name>` hold the complete output of one attempt; the first attempt wins.

    Every attempt writes into a folder of its own, `<home>/_staging/<name>/<attempt>`. When this returns, the target exists and never changes again.
    Only then are the staging folders of this name deleted, those of other attempts too: whatever they still hold, their rename will be refused.
    Before that, another attempt may be alive, and to delete a part of its output would let it publish the rest.

    Args:
        folders: the file system.
        home: the folder of all names.
        name: of this output.
        write: writes the output into a folder that does not exist yet.

    Raises:
        OSError: the folder could not be renamed, and no other attempt was faster.
    """
    target, stagings = f"{home}/{name}", f"{home}/_staging/{name}"
    if not folders.exists(target):
        staging = f"{stagings}/{uuid.uuid4().hex}"
        write(staging)
        _moved(folders, staging, target)
    folders.delete(stagings)


def _moved(folders: Folders, staging: str, target: str) -> None:
    """Renames, or finds that the target exists: then another attempt was faster, or the reply to this rename was lost."""
    try:
        folders.move(staging, target)
    except OSError:
        if not folders.exists(target):
            raise
        log.info("%s exists: what another attempt wrote counts", target)


class LocalFolders:
    """Disks that this machine has mounted, network disks too. POSIX: `rename` refuses a folder that is not empty."""

    def exists(self, path: str) -> bool:
        """See `Folders.exists`."""
        return os.path.lexists(local(path))

    def move(self, source: str, target: str) -> None:
        """See `Folders.move`."""
        os.rename(local(source), local(target))  # noqa: PTH104 - paths are text here, as in every file system

    def delete(self, path: str) -> None:
        """See `Folders.delete`."""
        shutil.rmtree(local(path), ignore_errors=True)


def local(path: str) -> str:
    """Without the scheme and the empty host of `file:/a` and `file:///a`."""
    return re.sub(r"^file:(//[^/]*)?", "", path, flags=re.IGNORECASE)


class HadoopFolders:
    """HDFS, over py4j. `FileContext.rename` is one step there and refuses a target that exists; `FileSystem.rename` would move into it."""

    def __init__(self, jvm: Any, configuration: Any, uri: Any) -> None:
        self._hadoop = jvm.org.apache.hadoop.fs
        self._files = self._hadoop.FileContext.getFileContext(uri, configuration)
        self._none = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename"), 0)

    def exists(self, path: str) -> bool:
        """See `Folders.exists`."""
        return bool(self._files.util().exists(self._hadoop.Path(path)))

    def move(self, source: str, target: str) -> None:
        """See `Folders.move`."""
        try:
            self._files.rename(self._hadoop.Path(source), self._hadoop.Path(target), self._none)
        except Py4JJavaError as error:
            raise OSError(f"{source} could not be renamed to {target}: {error.java_exception}") from error

    def delete(self, path: str) -> None:
        """See `Folders.delete`."""
        try:
            self._files.delete(self._hadoop.Path(path), True)  # noqa: FBT003 - py4j has no keyword arguments
        except Py4JJavaError as error:
            log.debug("%s could not be deleted: %s", path, error.java_exception)


def of(spark: SparkSession, path: str, named: str) -> Folders:
    """The file system of a path.

    Args:
        spark: a classic session; its Hadoop configuration names the file system of a path without a scheme.
        path: as the user gave it.
        named: the field that holds it, for the message.

    Raises:
        Refused: its rename is not known to be atomic.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no file system of its own
    configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001
    uri = jvm.org.apache.hadoop.fs.Path(path).toUri()
    default = jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(configuration)
    scheme = str(uri.getScheme() or default.getScheme()).lower()
    if scheme == "file":
        return LocalFolders()
    if scheme == "hdfs":
        return HadoopFolders(jvm, configuration, uri if uri.getScheme() else default)
    raise not_atomic(named, path, scheme)


def not_atomic(named: str, path: str, scheme: str) -> Refused:
    """That the rename of a file system is not known to be one step."""
    return Refused(
        f"{named}: {path}: Sluice does not know {scheme}:// to rename a folder in one step; readers could see a part of a batch, or two attempts "
        "of it. Name a folder on hdfs:// or file:// (a disk that all pods mount), or write with a function of your own: "
        'batch.write.mode("overwrite") into a folder that is named by info.consumer and info.batch'
    )
