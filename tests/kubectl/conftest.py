"""Makes `scene`, what these tests share, importable by its own name, and helpers of the operator's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
import urllib3
from moto.server import ThreadedMotoServer

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).parents[1] / "operator"))
sys.path.insert(2, str(Path(__file__).parents[1] / "sim" / "operator"))

from scene import Scene, resource


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def orders(scene: Scene) -> Scene:
    scene.put(resource("running"))
    scene.driver("orders")
    return scene


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # boto3 keeps the credentials that it found first
    server = ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    found = f"http://{host}:{port}"
    urllib3.request("POST", f"{found}/moto-api/reset")  # tables are the process's, not the server's
    yield found
    server.stop()
