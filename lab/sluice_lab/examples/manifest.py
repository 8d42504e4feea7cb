"""An example's manifest: what the cluster says to it, and the configuration that the operator makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_operator.apply.manifests import driver_config
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus

Json = dict[str, Any]
CRD = places.REPO / "crds" / "kinesisconsumers.sluice.dev.yaml"


def documents(path: Path) -> list[Json]:
    """The documents of a file."""
    return [found for found in yaml.safe_load_all(path.read_text()) if found]


def configuration(path: Path, endpoints: dict[str, str]) -> Json:
    """The driver's configuration, as the operator makes it, with other endpoints of the stream and nothing else changed.

    Raises:
        LabError: the cluster would refuse the manifest. InvalidSpec: the operator would.
    """
    (manifest,) = documents(path)
    refuse(manifest)
    meta, raw = manifest["metadata"], {**manifest["spec"]}
    parse(raw)
    raw["stream"] = {**raw["stream"], **endpoints}
    resource = Resource(namespace=meta.get("namespace", "default"), name=meta["name"], uid="u-1", version="1", generation=1)
    driver = DriverStatus(attempt=1, pod=f"{meta['name']}-driver-1")
    return driver_config(resource, DesiredSpec(parse(raw), raw), driver, Settings())


def refuse(manifest: Json) -> None:
    """Judges a manifest by the schema of the CRD, as the API server does.

    Raises:
        LabError: it does not fit; the message names the fields.
    """
    (crd,) = documents(CRD)
    (version,) = crd["spec"]["versions"]
    named = {"apiVersion": f"{crd['spec']['group']}/{version['name']}", "kind": crd["spec"]["names"]["kind"]}
    wrong = [f"{key}: {manifest.get(key)!r} is not {value}" for key, value in named.items() if manifest.get(key) != value]
    found = Draft202012Validator(version["schema"]["openAPIV3Schema"]).iter_errors(manifest)
    wrong += [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found]
    if wrong:
        raise LabError(f"{CRD.name} refuses the manifest: {'; '.join(wrong)}")
