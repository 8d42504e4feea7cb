"""`manifest.Store` on disks, HDFS and S3, over Hadoop's file systems."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from sluice_checkpoints.errors import Refused

CONDITIONAL = "fs.option.create.conditional.overwrite"
"""S3A: PUT with `If-None-Match: *` (Hadoop 3.4.2 and later)."""


class HadoopStore:
    """Any file system of Hadoop's; a subclass says how a file is created on a condition."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no file system of its own
        self._jvm, self._path = jvm, jvm.org.apache.hadoop.fs.Path
        self._files = self._path(root).getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001

    def create(self, path: str, content: bytes) -> bool:
        raise NotImplementedError

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def read(self, path: str) -> bytes:
        """A small file."""
        stream = self._files.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def files(self, folder: str) -> Iterator[tuple[str, int]]:
        if not self.exists(folder):
            return
        home = self._files.makeQualified(self._path(folder)).toUri().getPath()
        listed = self._files.listFiles(self._path(folder), True)  # noqa: FBT003 - py4j has no keyword arguments
        while listed.hasNext():
            status = listed.next()
            yield status.getPath().toUri().getPath().removeprefix(f"{home}/"), status.getLen()

    def delete(self, folder: str) -> None:
        with contextlib.suppress(Py4JJavaError):
            self._files.delete(self._path(folder), True)  # noqa: FBT003


class S3Store(HadoopStore):
    """S3 and what is like it, by a conditional PUT. The first one of a bucket is repeated: a server that ignores the condition takes it again."""

    _tried: ClassVar[set[str]] = set()

    def create(self, path: str, content: bytes) -> bool:
        made, bucket = self._put(path, content), str(self._files.getUri())
        if made and bucket not in self._tried:
            if self._put(path, content):
                raise Refused(f"{bucket}: this server ignores If-None-Match, so attempts replace what counts; use one with conditional writes")
            self._tried.add(bucket)
        return made

    def _put(self, path: str, content: bytes) -> bool:
        builder = self._files.createFile(self._path(path)).recursive().overwrite(True)  # noqa: FBT003 - the condition is the option's
        try:
            stream = builder.must(CONDITIONAL, True).build()  # noqa: FBT003
            stream.write(bytearray(content))
            stream.close()
        except Py4JJavaError as error:
            return _refused(self, path, error)
        return True


class RenamingStore(HadoopStore):
    """HDFS: a file is written under another name; the rename of `FileContext` refuses a target that exists. `FileSystem.rename` moves into it."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        super().__init__(spark, root)
        hadoop, java = self._jvm.org.apache.hadoop.fs, self._jvm.java.lang
        self._context = hadoop.FileContext.getFileContext(self._files.getUri(), self._files.getConf())
        self._none = java.reflect.Array.newInstance(java.Class.forName("org.apache.hadoop.fs.Options$Rename"), 0)

    def create(self, path: str, content: bytes) -> bool:
        aside = f"{path}.{uuid.uuid4().hex}"
        stream = self._files.create(self._path(aside))
        stream.write(bytearray(content))
        stream.close()
        try:
            self._context.rename(self._path(aside), self._path(path), self._none)
        except Py4JJavaError as error:
            held = _refused(self, path, error)
            self.delete(aside)
            return held
        return True


class DiskStore(HadoopStore):
    """Disks of this machine, and network disks that know hard links: `link` refuses a target that exists."""

    def create(self, path: str, content: bytes) -> bool:
        target = _local(path)
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120 - paths are text here, as in every file system
        aside = f"{target}.{uuid.uuid4().hex}"
        with open(aside, "xb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(aside, target)
        except FileExistsError:
            return False
        finally:
            os.unlink(aside)  # noqa: PTH108
        return True


def hadoop_store(spark: SparkSession, root: str, field: str = "pipeline.args.path") -> HadoopStore:
    """The store of a path; `field` names it in errors.

    Raises:
        Refused: the file system is not known to create a file on a condition. Py4JJavaError: it cannot be had.
    """
    jvm: Any = spark._jvm  # noqa: SLF001
    default = jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    scheme = str(jvm.org.apache.hadoop.fs.Path(root).toUri().getScheme() or default.getScheme()).lower()
    if scheme not in KINDS:
        raise unconditional(field, root, scheme)
    return KINDS[scheme](spark, root)


KINDS: dict[str, type[HadoopStore]] = {"file": DiskStore, "hdfs": RenamingStore, "s3a": S3Store}


def unconditional(field: str, root: str, scheme: str) -> Refused:
    """The refusal of a file system that is not known to create a file on a condition."""
    return Refused(f"{field}: {root}: Sluice does not know {scheme}:// to create a file only if there is none; use s3a://, hdfs:// or file://")


def _local(path: str) -> str:
    """Without the scheme and the empty host of `file:/a` and `file:///a`."""
    return re.sub(r"^file:(//[^/]*)?", "", path, flags=re.IGNORECASE)


def _refused(store: HadoopStore, path: str, error: Py4JJavaError) -> bool:
    """False if the file exists, so the condition failed; an error otherwise. A reply may have been lost: the caller compares."""
    if store.exists(path):
        return False
    raise OSError(f"{path} could not be created: {error.java_exception}") from error
