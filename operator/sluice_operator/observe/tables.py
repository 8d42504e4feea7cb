"""Which resource has a checkpoint table. A table has one consumer: two would take turns, and each would miss what the other got. Pure.

A table is a resource's when its driver or its migration has worked on it. Before that it is the one's whose name it has. To name a table, to be
older, or to start a pod that never gets there, takes it from nobody. The table names its owner, too: the operator only refuses earlier.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from sluice_operator.names import default_table, region_of
from sluice_operator.observe import parse
from sluice_operator.state.status import Status
from sluice_operator.untrusted.values import Unreadable, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import ResourceKey
    from sluice_operator.resource.policy import Policy

URL = 512  # characters of an endpoint
DOMAINS = r"amazonaws\.com|amazonaws\.com\.cn|api\.aws|api\.amazonwebservices\.com\.cn"
AWS = re.compile(rf"(?:.+\.)?(?:dynamodb|dynamodb-fips|ddb)\.([a-z0-9-]+)\.(?:vpce\.)?(?:{DOMAINS})")
PORTS = {"http": 80, "https": 443}


class TableName(NamedTuple):
    """Where the table is, and how it is called. The endpoint is '' for AWS itself."""

    endpoint: str
    region: str
    name: str


class Claim(IntEnum):
    """What a resource has of a table that it names, strongest first."""

    WORKED = 1  # its driver took the lease, or its migration is complete; or it is being deleted, and something of it may still run
    BY_NAME = 2  # nobody else has this table by default: names of Kubernetes have no `_`
    TRIES = 3  # it was let through; a driver or a migration of it may be on its way
    NAMES = 4
    IN_VAIN = 5  # what was tried has failed, and the table was never reached


class Named(NamedTuple):
    """What a resource says: the table that its spec names, the one that it has begun with, how far it came there, and its age.

    With `state` all is here that `starts` depends on.
    """

    wanted: TableName
    begun: TableName | None
    reached: Claim
    age: tuple[str, ResourceKey]
    state: tuple[object, ...]

    @property
    def tables(self) -> set[TableName]:
        """Both."""
        return {self.wanted} | ({self.begun} if self.begun else set())

    def claim(self, table: TableName, *, granted: bool) -> Claim:
        """What it has of this table."""
        here = self.reached if self.begun == table else Claim.NAMES
        if here is not Claim.WORKED and table.name == default_name(self.age[1]):
            return Claim.BY_NAME
        return Claim.TRIES if granted and here is Claim.NAMES else here


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

    def named(self, key: ResourceKey) -> Named | None:
        """What the resource says. While that stays as it is, no answer of `holder` to others changes by it."""
        return self._named.get(key)

    def sharing(self, key: ResourceKey) -> set[ResourceKey]:
        """The other resources that name a table of this one."""
        found = self._named.get(key)
        return {other for table in found.tables for other in self._sharing[table]} - {key} if found else set()

    def holder(self, key: ResourceKey, body: Json, starts: Callable[[ResourceKey], bool]) -> ResourceKey | None:
        """The other resource that has the table which this one names; None if this one may have it, and then it is let through.

        The strongest `Claim` has it, of equals the oldest. A resource that would not start now counts only where it has worked.

        Args:
            key: the resource.
            body: as it was read.
            starts: whether a resource would start a driver or a migration now.
        """
        me = _named(key, body)
        table = me.wanted
        known = {other: self._named[other] for other in self._sharing.get(table, set()) - {key}} | {key: me}
        claims = {one: named.claim(table, granted=one == self._granted.get(table)) for one, named in known.items()}

        def counts(one: ResourceKey) -> bool:
            return claims[one] is Claim.WORKED or (known[one].wanted == table and starts(one))

        ordered = sorted(known, key=lambda one: (claims[one], known[one].age))
        first = key if len(known) == 1 else next(filter(counts, ordered), key)
        if first == key:
            self._granted[table] = key
            return None
        return first if claims[first] is Claim.WORKED or starts(key) else None


def starts(body: Json, policy: Policy) -> bool:
    """Whether a driver or a migration of the resource would be started now, if it has its table."""
    about = parse.resource(body)
    try:
        wanted, problem = parse.accept(part(body, "spec"), Status(), about.namespace, policy)
    except Unreadable:
        return False
    if wanted is None or problem or about.deleting or about.paused or wanted.spec.suspend:
        return False
    return wanted.spec.replicas > 0 or wanted.spec.migrate_from is not None or wanted.spec.position is not None


def _named(key: ResourceKey, body: Json) -> Named:
    status = part(body, "status")
    spec = part(body, "spec") or part(status, "lastGoodSpec")  # of one that was not read, the last one stays
    reached = _reached(body)
    begun = None if reached is Claim.NAMES else table(key, part(status, "lastGoodSpec") or spec)
    meta = part(body, "metadata")
    state = (meta.get("uid"), meta.get("generation"), "deletionTimestamp" in meta, text(part(meta, "annotations"), parse.PAUSED))
    return Named(table(key, spec), begun, reached, (text(meta, "creationTimestamp") or "", key), state)


def _reached(body: Json) -> Claim:
    """How far it came with the table that it began with."""
    driver, migration, position = (part(body, "status", each) for each in ("driver", "migration", "position"))
    runs = (
        driver.get("pod") or driver.get("leaving") or part(body, "status", "standby") or "Running" in (migration.get("state"), position.get("state"))
    )
    if "deletionTimestamp" in part(body, "metadata"):
        return Claim.WORKED if runs else Claim.NAMES
    if whole(driver.get("generation")) or "Complete" in (migration.get("state"), position.get("state")):
        return Claim.WORKED
    if whole(part(body, "status", "restarts").get("count")) or migration.get("state") == "Failed":
        return Claim.IN_VAIN
    return Claim.TRIES if runs or whole(driver.get("attempt")) else Claim.NAMES


def default_name(key: ResourceKey) -> str:
    """The table of a resource that names none."""
    return default_table(key.namespace, key.name)


def table(key: ResourceKey, spec: Json) -> TableName:
    """The checkpoint table that a spec names, or the one of the resource's own name."""
    stream = part(spec, "stream")
    name = text(part(spec, "checkpoints"), "table", URL) or default_name(key)
    return TableName(*_place(text(stream, "dynamodbEndpoint", URL) or "", text(stream, "region") or region_of(text(stream, "arn", URL) or "")), name)


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
