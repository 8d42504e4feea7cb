"""`spec.pipeline.source`: the pipeline's modules out of a ConfigMap, so that no image is needed (docs/interfaces.md, "Source").

The kubelet changes the files of a mounted ConfigMap while a pod runs. So a driver copies them once, as it starts. Its processes import the copy, and
Spark hands the same files to executors. Two versions of a module never work on one epoch.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from sluice_checkpoints.errors import Refused
from sluice_consumer import logs

CONFIG_MAP, COPY = "SLUICE_SOURCE", "SLUICE_SOURCE_COPY"
MOUNTED = Path("/opt/sluice/source")


def take(environment: MutableMapping[str, str], mounted: Path = MOUNTED, temporary: Path | None = None) -> None:
    """Copy the modules, and put the copy first on the path of this process and of those that it starts. Without a source nothing is done.

    Raises:
        Refused: the ConfigMap does not exist, or has no key that ends with `.py`.
    """
    name = environment.get(CONFIG_MAP)
    if name is None:
        return
    files = sorted(_snapshot(mounted).glob("*.py"))
    if not files:
        raise Refused(f"pipeline.source.configMap: {name} does not exist in the consumer's namespace, or has no key that ends with .py")
    copy = (temporary or Path(tempfile.gettempdir())) / "sluice-source"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for file in files:
        shutil.copyfile(file, copy / file.name)
    logs.say(f"ConfigMap {name}: {', '.join(file.name for file in files)}")
    environment[COPY] = str(copy)
    environment["PYTHONPATH"] = os.pathsep.join([str(copy), *filter(None, [environment.get("PYTHONPATH")])])
    sys.path.insert(0, str(copy))


def modules(environment: MutableMapping[str, str]) -> Iterable[Path]:
    """The files of the copy, for Spark to hand to executors."""
    return sorted(Path(environment[COPY]).glob("*.py")) if COPY in environment else ()


def _snapshot(mounted: Path) -> Path:
    """One version of a mounted ConfigMap: the kubelet replaces the link `..data`, never a file that it leads to."""
    return (mounted / "..data").resolve() if (mounted / "..data").exists() else mounted
