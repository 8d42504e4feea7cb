"""Makes the archive of classes that the JVMs of Spark start from: `python train.py ARCHIVE`. Runs while the consumer image is built.

A driver loads 15,000 classes until its first batch is done; to read and check them is half of the CPU that this takes. HotSpot maps them from an
archive instead, if the class path begins exactly as it did here. `jars/*` comes in the order of the file system, so the class path begins with a jar
that names them in order. Where anything differs (a jar was changed, another Java) the archive is not used, and nothing else happens.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

from api import Server

CLASS_PATH = "classpath.jar"
QUIET = "-Xlog:cds*=off"


def write_class_path(spark: Path) -> Path:
    """A jar that holds nothing but the names of Spark's jars."""
    names = " ".join(f"jars/{jar.name}" for jar in sorted((spark / "jars").glob("*.jar")))
    lines = ["Manifest-Version: 1.0"]
    text = f"Class-Path: {names}"
    lines += [text[:70], *(f" {text[at : at + 69]}" for at in range(70, len(text), 69))]  # a line of a manifest has 72 bytes at most
    path = spark / CLASS_PATH
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), "\r\n".join([*lines, ""]))
    return path


def classes(folder: Path, class_path: Path) -> list[str]:
    """The names of the classes that a driver and its executors load until they have run a few batches."""
    lists = [folder / name for name in ("driver", "executor", "batches")]
    driver, executor, batches = (f"-XX:DumpLoadedClassList={path} {QUIET}" for path in lists)
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _run(server.master, driver, str(class_path), executor)
    for process in server.processes:
        process.wait(300)
    server.ended.set()
    _run("local[2]", batches, str(class_path), "")
    lines = [line for path in lists for line in path.read_text().splitlines()]
    # Numbers are of one list only, and what has a `source:` was loaded by a loader of its own.
    return list(dict.fromkeys(line.partition(" id: ")[0] for line in lines if "source:" not in line))


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, str(Path(__file__).with_name("job.py")), *arguments], check=True, timeout=900)


def main(archive: str) -> None:
    """All of it."""
    class_path = write_class_path(Path(os.environ["SPARK_HOME"]))
    with tempfile.TemporaryDirectory() as name:
        found = classes(Path(name), class_path)
        listed = Path(name) / "all"
        listed.write_text("\n".join([*found, ""]))
        options = (f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off", "-Xlog:class+path=off")
        subprocess.run(["java", "-Xshare:dump", *options, "-cp", str(class_path)], check=True, timeout=900)
    print(f"{len(found)} classes, {Path(archive).stat().st_size // 10**6} MB")


if __name__ == "__main__":
    main(sys.argv[1])
