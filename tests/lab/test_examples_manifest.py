"""Examples are listed, and their manifests judged before they are run, by the CRD and by the operator."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_lab.errors import LabError
from sluice_lab.examples import manifest
from sluice_lab.places import REPO
from sluice_operator.resource.fields import InvalidSpec

ENDPOINTS = {"kinesisEndpoint": "http://127.0.0.1:1", "dynamodbEndpoint": "http://127.0.0.1:2"}


def test_the_list_of_examples_is_whole() -> None:
    rows = (REPO / "examples" / "README.md").read_text()
    folders = [path.parent.name for path in sorted((REPO / "examples").glob("*/README.md"))]
    assert folders
    assert [name for name in folders if f"| [{name}]({name}/README.md) |" not in rows] == []


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("v1alpha1", "v1", LabError, "apiVersion: 'sluice.dev/v1' is not sluice.dev/v1alpha1"),
        ("replicas: 2", "replicas: two", LabError, r"spec\.replicas: 'two' is not of type 'integer'"),
        ("replicas: 2", "replica: 2", InvalidSpec, r"spec\.replica: unknown field; did you mean replicas\?"),
    ],
)
def test_a_manifest_that_would_be_refused_is_refused_here(old: str, new: str, error: type[Exception], message: str, tmp_path: Path) -> None:
    path = tmp_path / "consumer.yaml"
    path.write_text((REPO / "examples" / "own-process" / "consumer.yaml").read_text().replace(old, new))
    with pytest.raises(error, match=message):
        manifest.configuration(path, ENDPOINTS)
