"""The CRD of pools, as a real API server judges by it."""

from __future__ import annotations

from typing import Any

import pytest
from admission_scene import Caller
from crd_server import POOLS
from pool_scene import POOL, pooled

from sluice_operator.cluster.port import POOL_KIND
from sluice_operator.state.serialization import dropped

pytestmark = pytest.mark.built

Json = dict[str, Any]


def pool(name: str, **spec: Any) -> Json:
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": POOL_KIND, "metadata": {"name": name}, "spec": {**POOL, **spec}}


def test_a_pool_is_stored_and_so_is_all_that_the_operator_writes_of_it(admin: Caller) -> None:
    """A field of the status that the CRD lacked would be dropped, and the operator would refuse to act."""
    admin.call("POST", POOLS, pool("small"))
    present = admin.call("GET", f"{POOLS}/small")
    assert (present["spec"]["slotShare"], present["spec"]["drainTimeoutSeconds"]) == (0.25, 120)
    status = pooled().get(POOL_KIND, "small")["status"]
    written = admin.call("PUT", f"{POOLS}/small/status", {**present, "status": status})
    assert dropped(status, written["status"]) is None
    assert admin.call("GET", f"{POOLS}/small/scale")["status"]["selector"] == "sluice.dev/pool=small,sluice.dev/role=executor"


@pytest.mark.parametrize(("name", "spec", "word"), [
    ("a" * 46, {}, "metadata.name"),
    ("small", {"sparkConf": {"spark.master": "local"}}, "sparkConf: spark.master"),
    ("small", {"slotShare": 2}, "slotShare"),
    ("small", {"replicas": -1}, "replicas"),
])  # fmt: skip
def test_what_no_pool_may_say_is_refused(admin: Caller, name: str, spec: Json, word: str) -> None:
    with pytest.raises(AssertionError, match=word):
        admin.call("POST", f"{POOLS}?dryRun=All", pool(name, **spec))
