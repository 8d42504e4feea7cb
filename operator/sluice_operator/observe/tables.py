"""Which resource has a checkpoint table. A table has one consumer: two would take turns, and each would miss what the other got. Pure.

A table is a resource's when its driver or its migration has begun with it. To name a table, or to be older, gives no right to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from sluice_operator.observe import parse
from sluice_operator.state.status import Status
from sluice_operator.untrusted.values import Unreadable, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.spec.policy import Policy

URL = 512  # characters of an endpoint
DOMAINS = r"amazonaws\.com|amazonaws\.com\.cn|api\.aws|api\.amazonwebservices\.com\.cn"
AWS = re.compile(rf"(?:.+\.)?(?:dynamodb|dynamodb-fips|ddb)\.([a-z0-9-]+)\.(?:vpce\.)?(?:{DOMAINS})")
PORTS = {"http": 80, "https": 443}


class TableName(NamedTuple):
    """Where the table is, and how it is called. The endpoint is '' for AWS itself."""

    endpoint: str
    region: str
    name: str


class Named(NamedTuple):
    """What a resource says: the table that its spec names, the one that its driver or migration has begun with, and its age."""

    wanted: TableName
    begun: TableName | None
    age: tuple[str, ResourceKey]

    @property
    def tables(self) -> set[TableName]:
        """Both."""
        return {self.wanted} | ({self.begun} if self.begun else set())


class Tables:
    """The resources in a cache by their tables. `note` each change."""

    def __init__(self) -> None:
        self._named: dict[ResourceKey, Named] = {}
        self._sharing: dict[TableName, set[ResourceKey]] = {}
        self._granted: dict[TableName, ResourceKey] = {}

    def note(self, key: ResourceKey, body: Json | None) -> None:
        """The resource is so now; None: it is gone."""
        new, old = None if body is None else _named(key, body), self._named.pop(key, None)
        for table in old.tables if old else ():
            self._sharing[table].discard(key)
            if not self._sharing[table]:
                del self._sharing[table]
            if new is None and self._granted.get(table) == key:
                del self._granted[table]
        if new is not None:
            self._named[key] = new
            for table in new.tables:
                self._sharing.setdefault(table, set()).add(key)

    def sharing(self, key: ResourceKey) -> set[ResourceKey]:
        """The other resources that name a table of this one."""
        found = self._named.get(key)
        return {other for table in found.tables for other in self._sharing[table]} - {key} if found else set()

    def holder(self, key: ResourceKey, body: Json, starts: Callable[[ResourceKey], bool]) -> ResourceKey | None:
        """The other resource that has the table which this one names; None if this one may have it, and then nobody else gets it.

        It was granted the table, or has begun with it. Of those that have neither and would start now the oldest is granted it.
        `starts` says whether a resource would.
        """
        me = _named(key, body)
        table = me.wanted
        others = self._sharing.get(table, set()) - {key}
        known = {other: self._named[other] for other in others}
        begun = [other for other in others if known[other].begun == table]
        granted = self._granted.get(table)
        if granted in others and (granted in begun or (known[granted].wanted == table and starts(granted))):
            return granted
        if granted != key and (me.begun == table or begun):
            first = _first(begun, known, me if me.begun == table else None)
        elif granted != key and others:
            if not starts(key):
                return None
            first = _first([other for other in others if known[other].wanted == table and starts(other)], known, me)
        else:
            first = key
        if first == key:
            self._granted[table] = key
        return None if first == key else first


def _first(keys: Iterable[ResourceKey], known: dict[ResourceKey, Named], me: Named | None) -> ResourceKey:
    ages = [known[key].age for key in keys] + ([me.age] if me else [])
    return min(ages)[1]


def starts(body: Json, policy: Policy) -> bool:
    """Whether a driver or a migration of the resource would be started now, if it has its table."""
    about = parse.resource(body)
    try:
        wanted, problem = parse.accept(part(body, "spec"), Status(), about.namespace, policy)
    except Unreadable:
        return False
    if wanted is None or problem or about.deleting or about.paused or wanted.spec.suspend:
        return False
    return wanted.spec.replicas > 0 or wanted.spec.migrate_from is not None


def _named(key: ResourceKey, body: Json) -> Named:
    status = part(body, "status")
    spec = part(body, "spec") or part(status, "lastGoodSpec")  # of one that was not read, the last one goes on
    begun = table(key, part(status, "lastGoodSpec") or spec) if _has_begun(body) else None
    return Named(table(key, spec), begun, (text(part(body, "metadata"), "creationTimestamp") or "", key))


def _has_begun(body: Json) -> bool:
    """Whether its status names a driver or a migration. Of one that is being deleted: whether one may still run."""
    driver, migration = part(body, "status", "driver"), part(body, "status", "migration")
    if "deletionTimestamp" in part(body, "metadata"):
        return bool(driver.get("pod") or driver.get("leaving") or migration.get("state") == "Running")
    return bool(whole(driver.get("attempt")) or migration)


def table(key: ResourceKey, spec: Json) -> TableName:
    """The checkpoint table that a spec names, or the one of the resource's own name."""
    stream = part(spec, "stream")
    name = text(part(spec, "checkpoints"), "table", URL) or f"sluice_{key.namespace}_{key.name}"
    return TableName(*_place(text(stream, "dynamodbEndpoint", URL) or "", text(stream, "region") or ""), name)


def _place(endpoint: str, region: str) -> tuple[str, str]:
    """Endpoint and region, the same for all ways to write them. AWS has several endpoints for the tables of one region."""
    try:
        url = urlsplit(endpoint.strip().lower() if "//" in endpoint else f"//{endpoint.strip().lower()}")
        host, port = (url.hostname or "").rstrip("."), url.port
    except ValueError:
        return endpoint, region
    if not host:
        return "", region
    if aws := AWS.fullmatch(host):
        return "", aws[1]
    return f"{host}:{port or PORTS.get(url.scheme, 443)}{url.path.rstrip('/')}", region
