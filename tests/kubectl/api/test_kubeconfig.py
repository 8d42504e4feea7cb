"""Credentials, context and namespace are found as kubectl finds them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluice_kubectl.api.errors import CommandError
from sluice_kubectl.api.kubeconfig import Target, connect


def config(path: Path, current: str, **contexts: dict[str, Any]) -> Path:
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}.example"}} for name in contexts],
        "users": [{"name": name, "user": {"token": name}} for name in contexts],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **more}} for name, more in contexts.items()],
    }
    path.write_text(yaml.safe_dump(body))
    return path


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(config(tmp_path / "config", "one", one={}, two={"namespace": "shop"}))


@pytest.mark.parametrize(
    ("target", "host", "namespace"),
    [
        ({}, "http://one.example", "default"),
        ({"context": "two"}, "http://two.example", "shop"),
        ({"context": "two", "namespace": "web"}, "http://two.example", "web"),
        ({"all_namespaces": True}, "http://one.example", ""),
    ],
)
def test_the_context_says_server_and_namespace(file: str, target: dict[str, Any], host: str, namespace: str) -> None:
    api, found = connect(Target(kubeconfig=file, **target))
    assert (api.configuration.host, found) == (host, namespace)


def test_several_files_of_the_environment_are_one(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = config(tmp_path / "other", "three", three={"namespace": "far"})
    program = "from sluice_kubectl.api.kubeconfig import *; api, name = connect(Target(context='three')); print(api.configuration.host, name)"
    monkeypatch.setenv("KUBECONFIG", f"{file}:{other}")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "http://three.example far\n"


def test_a_context_that_is_not_there_is_named(file: str) -> None:
    with pytest.raises(CommandError, match=r"no usable kubeconfig: .*three.*; next: kubectl config get-contexts"):
        connect(Target(kubeconfig=file, context="three"))
