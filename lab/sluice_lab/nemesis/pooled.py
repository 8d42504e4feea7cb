"""A pool, the consumer under test in it, and its neighbours: the manifests, and what moves the consumer out and back. Pure.

All members read one stream, each with a table of its own and into a folder of its own. So each record has to be there once for each of them.
"""

from typing import Any

from sluice_lab.nemesis import manifest
from sluice_lab.nemesis.manifest import HOME, NAME, Addresses

LEASE_SECONDS = 20  # the least that a pool's members may have
CALM, TROUBLED = f"{NAME}-calm", f"{NAME}-troubled"  # one that is left alone, and one that is suspended, hangs and fails
NEIGHBOURS = (CALM, TROUBLED)
DRIVER_MEMORY, DRIVER_HEAP = "2Gi", "768m"  # of the pool's pod
MAX_SECONDS = 30  # batch.maxSeconds of the troubled one
OF_PODS = ("driver", "executor", "sparkConf")  # belong to the pool

Json = dict[str, Any]


def folder(root: str, name: str) -> str:
    """The folder of a member's sinks, in the folder of all of them."""
    return root if name == NAME else f"{root}/{name}"


def documents(addresses: Addresses) -> list[Json]:
    """The pool and its members."""
    return [pool(addresses), *(member(addresses, name) for name in (NAME, *NEIGHBOURS))]


def pool(addresses: Addresses) -> Json:
    """The KinesisConsumerPool, with the pods that the consumer has when it is alone, but for the driver's memory."""
    alone = manifest.consumer(addresses)["spec"]
    spec = {"replicas": 1, **{field: alone[field] for field in ("restart", "drainTimeoutSeconds", *OF_PODS)}}
    spec["driver"] = spec["driver"] | {"resources": {"requests": {"cpu": "50m", "memory": DRIVER_MEMORY}}}
    spec["sparkConf"] = spec["sparkConf"] | {"spark.driver.memory": DRIVER_HEAP}
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumerPool", "metadata": {"name": NAME}, "spec": spec}


def member(addresses: Addresses, name: str) -> Json:
    """A consumer in the pool."""
    found = manifest.consumer(addresses)
    spec = {key: value for key, value in found["spec"].items() if key not in OF_PODS}
    args = {"home": folder(HOME, name), "poison": name == TROUBLED}  # with `poison` it raises while its sink is down
    spec |= {"pool": NAME, "leaseDurationSeconds": LEASE_SECONDS, "pipeline": spec["pipeline"] | {"args": args}}
    if name == TROUBLED:
        spec["batch"] = spec["batch"] | {"maxSeconds": MAX_SECONDS}
    return found | {"metadata": {"name": name}, "spec": spec}


def leave(addresses: Addresses) -> Json:
    """The patch of the spec that moves the consumer into a driver of its own."""
    alone = manifest.consumer(addresses)["spec"]
    return {"pool": None, **{field: alone[field] for field in OF_PODS}}


def enter() -> Json:
    """The patch of the spec that moves it back."""
    return {"pool": NAME, **dict.fromkeys(OF_PODS)}
