"""Values of an earlier chart do what they did, and an upgrade changes nothing that Kubernetes does not let change."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart import CHART, NAMESPACE, RELEASE, helm, one, rendered

pytestmark = [pytest.mark.built, pytest.mark.slow]

Json = dict[str, Any]

RELEASED = Path(__file__).parents[1] / "released"
RECORD: Json = json.loads((RELEASED / "chart-0.1.json").read_text())


def test_values_of_the_earlier_chart_make_the_same_objects() -> None:
    """Under the same names: another name would be another Lease, another account, another budget beside the old one."""
    earlier = yaml.safe_load((RELEASED / "values-0.1.yaml").read_text())
    names = {(body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]) for body in rendered(**{**earlier, **RECORD["values"]})}
    assert {tuple(name) for name in RECORD["objects"]} <= names
    assert rendered(**earlier) == rendered()


def test_what_cannot_be_changed_in_place_has_not_changed() -> None:
    """A Deployment's selector and a binding's role are fixed by Kubernetes: an upgrade would fail."""
    assert one("Deployment", rendered())["spec"]["selector"] == {
        "matchLabels": {"app.kubernetes.io/name": "sluice", "app.kubernetes.io/instance": RELEASE}
    }
    labelled = rendered(commonLabels={"a": "b"}, podLabels={"c": "d", "app.kubernetes.io/instance": "other"})
    assert one("Deployment", labelled)["spec"]["selector"] == one("Deployment", rendered())["spec"]["selector"]
    assert one("Deployment", labelled)["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/instance"] == RELEASE


def test_an_upgrade_with_old_values_alone_says_what_to_do(tmp_path: Path) -> None:
    """`--reuse-values` takes the earlier chart's defaults, in which everything new is missing."""
    old = tmp_path / "sluice"
    shutil.copytree(CHART, old)
    shutil.copy(RELEASED / "values-0.1.yaml", old / "values.yaml")
    command = [helm(), "template", RELEASE, str(old), f"--namespace={NAMESPACE}", "--kube-version=1.34.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "--reset-then-reuse-values" in done.stderr
