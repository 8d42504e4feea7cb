"""The chart as an archive that Helm installs, and the same objects as plain manifests for `kubectl apply`.

In a clone the chart names images without a registry, for the lab loads them onto nodes. In a released chart `global.imageRegistry` is the registry
that it is made for, so that `helm install` and `kubectl apply` need no value.
"""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from sluice_checkpoints.names import counted
from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import node_image
from sluice_lab.machine.processes import run
from sluice_lab.release import archives
from sluice_lab.release.source import SourceTree

Json = dict[str, Any]
NAMESPACE, RELEASE = "sluice-system", "sluice"
CONSUMERS = "default"  # the namespace whose consumers get their accounts by install.yaml
OPERATOR, CONSUMER = "sluice-operator", "sluice-consumer"
REGISTRY = '\n  imageRegistry: ""\n'  # in values.yaml
HELMS = ("helm.sh/chart", "app.kubernetes.io/managed-by")  # labels that are not so where kubectl applies
IMAGE = re.compile(rf"[\w.:/-]*(?:{OPERATOR}|{CONSUMER})[:@][\w.:-]+")


def package(source: SourceTree, version: str, registry: str, out: Path, helm: str) -> Path:
    """Write `sluice-<version>.tgz`, whose default images are those of a registry.

    Raises:
        LabError: the chart's values are not as they were when this was written.
        CommandFailedError: Helm refuses the chart.
    """
    with tempfile.TemporaryDirectory(dir=places.made(out)) as temporary:
        folder = Path(temporary)
        shutil.copytree(source.folder / "charts" / "sluice", folder / "sluice")
        values = folder / "sluice" / "values.yaml"
        values.write_text(with_registry(values.read_text(), registry))
        run(helm, "package", str(folder / "sluice"), f"--destination={folder}", "--version", version, "--app-version", version)
        with tarfile.open(folder / f"sluice-{version}.tgz") as tar:
            tar.extractall(folder / "packed", filter="data")
        target = out / f"sluice-{version}.tgz"
        archives.pack(folder / "packed", target, source.epoch, compressed=True)
    return target


def with_registry(values: str, registry: str) -> str:
    """The text of values.yaml with a registry as the default of `global.imageRegistry`. With a mirror, you set that value, as with any chart."""
    if (count := values.count(REGISTRY)) != 1:
        raise LabError(
            f"charts/sluice/values.yaml: {REGISTRY.strip()!r} is there {counted(count, 'time')}; sluice_lab/release/charts.py wants it once"
        )
    return values.replace(REGISTRY, f"\n  imageRegistry: {registry}\n")


def manifests(chart: Path, version: str, registry: str, helm: str) -> str:
    """install.yaml: the chart with its default values, the namespace, and the accounts of consumers in the namespace `default`.

    Raises:
        LabError: an image in it is not of the registry.
    """
    options = (f"--namespace={NAMESPACE}", f"--kube-version={node_image.KUBERNETES}", "--no-hooks", f"--set=consumer.namespaces={{{CONSUMERS}}}")
    text = run(helm, "template", RELEASE, str(chart), *options)
    objects = [namespace(), *(without_helm(body) for body in yaml.load_all(text, yaml.CSafeLoader) if body)]
    found = yaml.safe_dump_all(objects, sort_keys=False, width=150)
    if others := {image for image in images(objects) if not image.startswith(f"{registry}/")}:
        raise LabError(f"charts/sluice: the released chart would use images of another registry than {registry}: {', '.join(sorted(others))}")
    return f"# Sluice {version}: kubectl apply -f install.yaml\n# Consumers run in the namespace {CONSUMERS}: their accounts are there.\n---\n{found}"


def namespace() -> Json:
    """The operator's."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"app.kubernetes.io/name": "sluice"}}}


def without_helm(body: Json) -> Json:
    """An object without the labels that say that Helm owns it."""
    metadata = body["metadata"]
    labels = {name: value for name, value in metadata.get("labels", {}).items() if name not in HELMS}
    return {**body, "metadata": {**{name: value for name, value in metadata.items() if name != "labels"}, **({"labels": labels} if labels else {})}}


def images(objects: object) -> Iterator[str]:
    """Sluice's images, wherever an object names one."""
    if isinstance(objects, dict):
        for value in objects.values():
            yield from images(value)
    elif isinstance(objects, list):
        for value in objects:
            yield from images(value)
    elif isinstance(objects, str) and IMAGE.fullmatch(objects):
        yield objects
