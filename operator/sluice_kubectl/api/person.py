"""What a person may ask of the cluster: resources by name, their pods and events, one conditional patch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import Any

from sluice_kubectl.api.errors import ChangedMeanwhile, CommandError, NothingThere
from sluice_kubectl.api.streams import LogRequest, PodTexts
from sluice_kubectl.views.actions import Intent
from sluice_kubectl.views.objects import host_of, of_host, pool_of
from sluice_kubectl.views.part import ObjectPart, name_of
from sluice_operator.cluster.port import CONSUMER_KIND, POOL_KIND, ApiError, Cluster, Conflict, Exists, Rejected, Unavailable
from sluice_operator.names import GROUP

Json = dict[str, Any]
PLAIN = re.compile(r"[a-z0-9][a-z0-9.-]*")
TRIES = 3  # of a write whose resource changed in between: a driver reports every few seconds
UNSURE = ". The change may have been made: look before you repeat it"
NO_CRD = f"the cluster does not know {CONSUMER_KIND}; next: check the context (kubectl config current-context), or install Sluice's chart or CRD"


class Person:
    """The cluster with a person's rights. `namespace` is '' for every one."""

    def __init__(self, cluster: Cluster, texts: PodTexts, namespace: str) -> None:
        self._cluster, self._texts, self.namespace = cluster, texts, namespace

    def consumers(self) -> list[Json]:
        """All of the namespace.

        Raises:
            NothingThere: there is no CRD, or no right to list.
        """
        with self._explained(f"list {CONSUMER_KIND}s"):
            try:
                return self._cluster.list(CONSUMER_KIND, self.namespace, {})
            except Conflict as error:
                raise NothingThere(NO_CRD) from error

    def consumer(self, name: str) -> Json:
        """One resource.

        Raises:
            NothingThere: there is none of that name; the message has similar ones.
        """
        with self._explained(f"get {CONSUMER_KIND} {name}"):
            body = self._cluster.get(CONSUMER_KIND, self.namespace, name)
        if body is None:
            raise NothingThere(self._unknown(name))
        return body

    def _unknown(self, name: str) -> str:
        names = sorted(name_of(body) for body in self.consumers())
        similar = get_close_matches(name, names, n=1)
        step = f"did you mean {similar[0]}?" if similar else f"next: one of {', '.join(names)}" if names else "next: status --all-namespaces"
        shown = name if PLAIN.fullmatch(name) else repr(name)
        missing = "" if names or self._has_namespace() else ", because the namespace does not exist"
        return f"there is no {CONSUMER_KIND} {shown} in namespace {self.namespace}{missing}; {step}"

    def _has_namespace(self) -> bool:
        """Whether it is there, as far as the person may know."""
        try:
            return self._cluster.get("Namespace", self.namespace, "") is not None
        except ApiError:
            return True

    def pods(self, name: str) -> list[Json]:
        """Driver, executors and migration of a consumer."""
        with self._explained("list pods"):
            return self._cluster.list("Pod", self.namespace, {f"{GROUP}/consumer": name})

    def pods_of(self, body: Json) -> list[Json]:
        """Driver, executors and migration of a consumer; and the pod of a pool that its driver runs in, with executors of that pool."""
        pods = self.pods(name_of(body))
        if host := host_of(body):
            with self._explained("list pods"):
                pods += of_host(host, self._cluster.list("Pod", self.namespace, {f"{GROUP}/pool": pool_of(host)}))
        return pods

    def pool(self, name: str) -> Json:
        """One KinesisConsumerPool.

        Raises:
            NothingThere: there is none of that name.
        """
        with self._explained(f"get {POOL_KIND} {name}"):
            body = self._cluster.get(POOL_KIND, self.namespace, name)
        if body is None:
            raise NothingThere(f"there is no {POOL_KIND} {name} in namespace {self.namespace}; next: status lists the pools")
        return body

    def pools(self) -> list[Json]:
        """All KinesisConsumerPools of the namespace; none if the cluster does not know them.

        Raises:
            NothingThere: there is no right to list them.
        """
        with self._explained(f"list {POOL_KIND}s"):
            try:
                return self._cluster.list(POOL_KIND, self.namespace, {})
            except Conflict:
                return []

    def pod(self, name: str) -> Json | None:
        """One pod; None if it is gone."""
        with self._explained(f"get pod {name}"):
            return self._cluster.get("Pod", self.namespace, name)

    def create_pod(self, body: Json) -> Json:
        """Creates a pod, on the condition that there is none of its name.

        Raises:
            ChangedMeanwhile: there is one.
        """
        name = name_of(body)
        with self._explained(f"create pod {name}", UNSURE):
            try:
                return self._cluster.create(body)
            except Exists as error:
                raise ChangedMeanwhile(f"there is a pod {name} already; nothing was written; next: try again in a second") from error

    def delete_pod(self, name: str, uid: str) -> None:
        """Deletes the pod with this uid; one that is gone, or another of its name, is left as it is."""
        with self._explained(f"delete pod {name}"), suppress(Conflict):
            self._cluster.delete("Pod", self.namespace, name, uid)

    def jobs(self, name: str) -> list[Json]:
        """Migrations of a consumer."""
        with self._explained("list jobs"):
            return self._cluster.list("Job", self.namespace, {f"{GROUP}/consumer": name})

    def events(self, uid: str) -> list[Json]:
        """Events about the object with this uid."""
        with self._explained("list events"):
            return [
                body for body in self._cluster.list("Event", self.namespace, {}) if ObjectPart.whole(body).part("involvedObject").text("uid") == uid
            ]

    def log(self, pod: str, request: LogRequest) -> Iterator[str]:
        """Lines of a pod's log."""
        with self._explained(f"read the log of {pod}"):
            try:
                yield from self._texts.log(self.namespace, pod, request)
            except Conflict as error:
                raise NothingThere(f"{pod} is gone: {error}; next: status lists the pods") from error

    def metrics(self, pod: str, port: int) -> str:
        """What a driver's /metrics says."""
        with self._explained(f"get pods/proxy of {pod}"):
            try:
                return self._texts.metrics(self.namespace, pod, port)
            except Conflict as error:
                raise NothingThere(f"{pod} is gone: {error}; next: try again") from error

    def act(self, name: str, decide: Callable[[Json], Intent], kind: str = CONSUMER_KIND) -> str:
        """Read, decide, and patch on the condition that nothing changed since; decides again if something did. Returns what to print.

        Raises:
            ChangedMeanwhile: it changed again and again; nothing was written.
            NotOffered: see the action.
        """
        for _ in range(TRIES):
            intent = decide(self.consumer(name) if kind == CONSUMER_KIND else self.pool(name))
            if intent.patch is None:
                return intent.message
            with self._explained(f"patch {kind} {name}", UNSURE):
                try:
                    self._cluster.patch(kind, self.namespace, name, intent.patch)
                except Conflict:
                    continue
                return intent.message
        raise ChangedMeanwhile(f"{name} changed between each of {TRIES} reads and writes; nothing was written; next: try again")

    @contextmanager
    def _explained(self, call: str, unsure: str = "") -> Iterator[None]:
        """Errors of a call as sentences with a next step."""
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        try:
            yield
        except Rejected as error:
            rights = error.reason == "Forbidden"
            step = "next: ask for that permission, or name a namespace with -n" if rights else "next: correct what the API server names"
            raise NothingThere(f"the API server refused to {call} {where}: {error.message}; {step}") from error
        except Unavailable as error:
            step = "next: log in again" if "Unauthorized" in str(error) else f"next: try kubectl version{unsure}"
            raise CommandError(f"no answer to {call} {where}: {error}; {step}") from error
