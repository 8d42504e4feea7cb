"""Which modules `sluice dev` imports anew when a file is saved."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from sluice_consumer.dev.reload import UserModules


def test_a_pipeline_of_sluice_forgets_no_module_of_sluice() -> None:
    """They lie in the pipeline's folder, and the driver that runs has them."""
    before = {name: module for name, module in sys.modules.items() if name.startswith("sluice_")}
    UserModules("sluice_consumer.pipelines:console").forget()
    assert {name: module for name, module in sys.modules.items() if name.startswith("sluice_")} == before


def test_the_modules_beside_a_persons_pipeline_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("mine_of_reload", "beside_mine_of_reload"):
        (tmp_path / f"{name}.py").write_text("")
        importlib.import_module(name)
    UserModules("mine_of_reload:process").forget()
    assert not {"mine_of_reload", "beside_mine_of_reload"} & set(sys.modules)
