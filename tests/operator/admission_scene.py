"""An API server with the chart's policy, and the accounts that call it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from chart import NAMESPACE, RELEASE
from simulated_cluster import SPEC

from sluice_lab.machine import apiserver
from sluice_operator.apply.jobs import migration_job
from sluice_operator.apply.manifests import driver_pod, executor_template
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus, MigrationStatus

Json = dict[str, Any]
ADMIN, HERE = "admin", "a"
JSON = "application/json"
OPERATOR = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
CONSUMER = f"system:serviceaccount:{HERE}:sluice-consumer"
PLURALS = {"Namespace": "namespaces", "Pod": "pods", "Job": "jobs"}
POLICIES = "apis/admissionregistration.k8s.io/v1"
RESOURCE = Resource(namespace=HERE, name="orders", uid="u", version="7", generation=3)
RAW: Json = {**SPEC, "migrateFrom": {"table": "old-table"}}
WANTED = DesiredSpec(parse(RAW), RAW)
SETTINGS = Settings(executor_account="sluice-executor")


class Denied(Exception):
    """403, with the server's words."""


@dataclass(frozen=True)
class Caller:
    """A user of an API server; `pod` is the uid of the pod whose token it shows."""

    server: apiserver.LocalApiServer
    user: str = ADMIN
    pod: str = ""

    def call(self, method: str, path: str, body: Json | None = None, kind: str = JSON, accept: str = JSON) -> Json:
        """One call; `kind` is of the body, `accept` of the reply.

        The administrator lends the user its rights, so that nothing but the policy says no.
        """
        headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": kind, "Accept": accept}
        if self.user != ADMIN:
            headers |= {"Impersonate-User": self.user, "Impersonate-Group": "system:masters"}
            headers |= {f"Impersonate-Extra-{quote('authentication.kubernetes.io/pod-uid', safe='')}": self.pod} if self.pod else {}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.server.url}/{path}", data, headers, method=method)  # noqa: S310 - ours, and https
        try:
            with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(self.server.authority)), timeout=20) as reply:  # noqa: S310
                found: Json = json.loads(reply.read())
                return found
        except urllib.error.HTTPError as error:
            words = error.read().decode()
            if error.code == 403:
                raise Denied(words) from None
            raise AssertionError(f"{method} {path}: {error.code} {words}") from None

    def create(self, body: Json, *, dry: bool = False) -> Json:
        return self.call("POST", f"{where(body)}{'?dryRun=All' if dry else ''}", body)

    def patch(self, body: Json, changes: Json) -> Json:
        return self.call("PATCH", f"{where(body)}/{body['metadata']['name']}", changes, "application/merge-patch+json")

    def delete(self, body: Json) -> None:
        """Only asked: nothing is to be gone for the next test."""
        self.call("DELETE", f"{where(body)}/{body['metadata']['name']}?dryRun=All")


def where(body: Json) -> str:
    group = "api/v1" if body["apiVersion"] == "v1" else f"apis/{body['apiVersion']}"
    return f"{group}/namespaces/{body['metadata']['namespace']}/{PLURALS[body['kind']]}"


def driver(name: str = "orders") -> Json:
    resource = Resource(namespace=HERE, name=name, uid="u", version="7", generation=3)
    return driver_pod(resource, WANTED, DriverStatus(attempt=1, pod=f"{name}-driver-1"), SETTINGS)


def job() -> Json:
    return migration_job(RESOURCE, WANTED, MigrationStatus(job="orders-migrate-1", hash="h", spec_hash="s", tries=1), SETTINGS)


def executor(of_driver: Json, name: str = "orders-1-exec-1") -> Json:
    body = executor_template(RESOURCE, WANTED, SETTINGS)
    meta = of_driver["metadata"]
    ref = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
    body["metadata"] |= {"namespace": HERE, "name": name, "ownerReferences": [ref]}
    body["spec"]["containers"][0]["image"] = "sluice-consumer:dev"
    return body


@dataclass(frozen=True)
class Scene:
    admin: Caller
    operator: Caller
    mine: Json
    theirs: Json
    executor: Json
    web: Json

    @property
    def driver(self) -> Caller:
        return Caller(self.admin.server, CONSUMER, self.mine["metadata"]["uid"])
