"""Modules out of a ConfigMap: one version of them for one driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.process import configmap_code


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def mounted(folder: Path, version: str, **files: str) -> Path:
    """A ConfigMap as the kubelet mounts it: a folder of a version, a link to it, and a link for each key."""
    there = folder / f"..{version}"
    there.mkdir(parents=True)
    for name, text in files.items():
        (there / f"{name}.py").write_text(text)
        link = folder / f"{name}.py"
        link.unlink(missing_ok=True)
        link.symlink_to(f"..data/{name}.py")
    new = folder / "..new"
    new.symlink_to(f"..{version}")
    new.rename(folder / "..data")
    return folder


def test_processes_of_the_driver_import_the_version_that_it_started_with(tmp_path: Path) -> None:
    environment = {"SLUICE_SOURCE": "orders-code", "PYTHONPATH": "/elsewhere"}
    folder = mounted(tmp_path / "source", "one", orders_code="import helper_code\nVERSION = helper_code.VERSION", helper_code="VERSION = 1")
    configmap_code.take(environment, folder, tmp_path)
    mounted(folder, "two", orders_code="VERSION = 2", helper_code="VERSION = 2")
    program = [sys.executable, "-c", "import orders_code; print(orders_code.VERSION)"]
    assert subprocess.check_output(program, env=os.environ | environment, text=True) == "1\n"
    assert environment["PYTHONPATH"].endswith(f"{os.pathsep}/elsewhere")
    assert [path.name for path in configmap_code.modules(environment)] == ["helper_code.py", "orders_code.py"]
    assert sys.path[0] == str(tmp_path / "sluice-source")


@pytest.mark.parametrize("files", [{}, {"README.md": "x"}], ids=["no ConfigMap: an empty folder", "no module in it"])
def test_a_configmap_without_modules_is_refused_by_its_name(tmp_path: Path, files: dict[str, str]) -> None:
    """Exit 65: another start does not help."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(Refused, match=r"pipeline\.source\.configMap: orders-code does not exist") as refused:
        configmap_code.take({"SLUICE_SOURCE": "orders-code"}, tmp_path, tmp_path)
    assert refused.value.exit_code == 65


def test_without_a_source_nothing_is_done(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    configmap_code.take(environment, tmp_path, tmp_path)
    assert (environment, list(tmp_path.iterdir()), list(configmap_code.modules(environment))) == ({}, [], [])
