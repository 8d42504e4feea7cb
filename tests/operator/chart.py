"""The chart, rendered by Helm as `helm install` would."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice_lab.machine import tools

Json = dict[str, Any]

CHART = Path(__file__).parents[2] / "charts" / "sluice"
RELEASE, NAMESPACE = "sluice", "sluice-system"
KUBERNETES = "--kube-version=1.34.0"


@functools.cache
def helm() -> str:
    return tools.helm()


def rendered(*options: str, **values: Any) -> list[Json]:
    """Every object of the chart with these values; an option of Helm's may come before.

    Raises:
        CalledProcessError: Helm refuses the values; its words are in `stderr`.
    """
    command = [helm(), "template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", KUBERNETES, *options, "--values=-"]
    text = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=True).stdout
    return [body for body in yaml.load_all(text, yaml.CSafeLoader) if body]


def refused(*options: str, **values: Any) -> str:
    """What Helm says of values that it refuses."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        rendered(*options, **values)
    return str(caught.value.stderr)


def notes(folder: Path, **values: Any) -> str:
    """What Helm says after an installation: `helm template` leaves it out, so a copy of the chart puts it into an object."""
    copy = folder / "sluice"
    shutil.copytree(CHART, copy, dirs_exist_ok=True)
    (copy / "templates" / "said.yaml").write_text('{kind: Said, text: {{ include "sluice/templates/NOTES.txt" . | toJson }}}')
    command = [helm(), "template", RELEASE, str(copy), f"--namespace={NAMESPACE}", KUBERNETES, "--values=-", "--show-only=templates/said.yaml"]
    text = subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=True).stdout
    return str(yaml.safe_load(text)["text"])


def of(kind: str, objects: list[Json]) -> list[Json]:
    return [body for body in objects if body["kind"] == kind]


def one(kind: str, objects: list[Json]) -> Json:
    (found,) = of(kind, objects)
    return found


def operator(objects: list[Json]) -> Json:
    """The container of the operator."""
    body: Json = next(each for each in one("Deployment", objects)["spec"]["template"]["spec"]["containers"] if each["name"] == "operator")
    return body


def environment(container: Json) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container["env"] if "value" in item}
