"""Makes `scene`, what these tests share, importable by its own name, and the operator's `http_twin`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "operator"))  # for `http_twin`

from scene import Scene, resource


@pytest.fixture
def scene() -> Scene:
    """An empty cluster."""
    return Scene()


@pytest.fixture
def orders(scene: Scene) -> Scene:
    """A cluster with the consumer `orders`, which works, and its pods."""
    scene.put(resource("running"))
    scene.driver("orders")
    return scene
