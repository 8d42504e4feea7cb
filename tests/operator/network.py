"""What NetworkPolicies let through, by Kubernetes' own rules: no network of the lab enforces them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A pod, or an address outside the cluster (no namespace). `ports` are the named ones."""

    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    address: str = "10.9.0.1"
    ports: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Port:
    number: int
    protocol: str = "TCP"


def allowed(policies: list[Json], source: Place, target: Place, port: Port) -> bool:
    """Whether a connection comes about: the source's egress and the target's ingress both have to let it."""
    out = _let(policies, "Egress", source, target, (target, port))
    return out and _let(policies, "Ingress", target, source, (target, port))


def _let(policies: list[Json], kind: str, subject: Place, peer: Place, where: tuple[Place, Port]) -> bool:
    """A pod that no policy of the kind selects is open; else any rule of any of them will do."""
    chosen = [p for p in policies if kind in p["spec"]["policyTypes"] and _selects(p["spec"]["podSelector"], p["metadata"]["namespace"], subject)]
    if not chosen:
        return True
    side = {"Ingress": "from", "Egress": "to"}[kind]
    rules = [(p["metadata"]["namespace"], rule) for p in chosen for rule in p["spec"].get(kind.lower()) or ()]
    return any(_peers(rule.get(side), namespace, peer) and _ports(rule.get("ports"), *where) for namespace, rule in rules)


def _selects(selector: Json, namespace: str, place: Place) -> bool:
    return place.namespace == namespace and _labelled(selector, place.labels)


def _labelled(selector: Json, labels: dict[str, str]) -> bool:
    if not (selector.get("matchLabels") or {}).items() <= labels.items():
        return False
    tests = {"In": lambda e: labels.get(e["key"]) in e["values"], "Exists": lambda e: e["key"] in labels}
    return all(tests[e["operator"]](e) for e in selector.get("matchExpressions") or ())


def _peers(peers: list[Json] | None, namespace: str, place: Place) -> bool:
    """None given means all."""
    return not peers or any(_peer(peer, namespace, place) for peer in peers)


def _peer(peer: Json, namespace: str, place: Place) -> bool:
    if block := peer.get("ipBlock"):
        address = ipaddress.ip_address(place.address)
        inside = address in ipaddress.ip_network(block["cidr"])
        return inside and not any(address in ipaddress.ip_network(part) for part in block.get("except") or ())
    if (spaces := peer.get("namespaceSelector")) is not None:
        there = bool(place.namespace) and _labelled(spaces, {"kubernetes.io/metadata.name": place.namespace})
        return there and _labelled(peer.get("podSelector") or {}, place.labels)
    return _selects(peer["podSelector"], namespace, place)


def _ports(ports: list[Json] | None, target: Place, port: Port) -> bool:
    if not ports:
        return True
    named = ((item, target.ports.get(item["port"], item["port"])) for item in ports)
    return any(number == port.number and item.get("protocol", "TCP") == port.protocol for item, number in named)
