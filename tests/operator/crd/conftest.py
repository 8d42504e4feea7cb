"""An API server with the CRDs, and its administrator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from admission_scene import ADMIN, Caller
from crd_server import install

from sluice_lab import places
from sluice_lab.machine import apiserver


@pytest.fixture(scope="module")
def admin() -> Iterator[Caller]:
    with apiserver.running(places.work(), (ADMIN,)) as server:
        caller = Caller(server)
        install(caller.call)
        yield caller
