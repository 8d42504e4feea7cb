"""The names by which this cluster is known, so that the checkpoint table distinguishes two of one account (docs/protocol.md, "The owner")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_operator.cluster.port import Rejected
from sluice_operator.untrusted.values import part, text

if TYPE_CHECKING:
    from sluice_operator.cluster.port import Cluster

SYSTEM = "kube-system"
"""Its uid lasts as long as the cluster's etcd. Kubernetes has no other name for a cluster."""


def identities(cluster: Cluster, name: str) -> tuple[str, ...]:
    """The name that a person gave it, if one did, and the uid of its `kube-system`, if this operator may read that.

    Raises:
        ApiError: no answer; the caller reconciles again.
    """
    try:
        uid = text(part(cluster.get("Namespace", SYSTEM, "") or {}, "metadata"), "uid")
    except Rejected:  # rights in some namespaces only
        uid = None
    return tuple(each for each in (name, uid) if each)
