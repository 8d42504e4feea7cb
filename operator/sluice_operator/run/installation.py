"""`python -m sluice_operator.run.installation`: what `helm test` runs, in the operator's image, with its account and its environment.

It asks what an installation depends on: that the API server serves KinesisConsumers to this account, and that somebody renews the Lease.
A Lease with a holder is not enough: a dead leader's name stays in it. Nothing is written.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_operator.cluster.client import ApiServer, connect
from sluice_operator.cluster.port import CONSUMER_KIND, ApiError
from sluice_operator.settings import Settings, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEADLINE = 60.0  # seconds: the first leader of all begins 15 s after its start, and images have to be pulled
PAUSE = 2.0  # seconds between looks; a leader renews as often


@dataclass(frozen=True, slots=True)
class InstallationCheck:
    """The answer to one question; `todo` is empty if it is good."""

    question: str
    answer: str
    todo: str = ""

    def __str__(self) -> str:
        return f"FAILED  {self.question}: {self.answer}. {self.todo}" if self.todo else f"ok      {self.question}: {self.answer}"


@dataclass(frozen=True, slots=True)
class WaitTimings:
    """How long to wait, by which clock."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    deadline: float = DEADLINE


def results(api: ApiServer, settings: Settings, timings: WaitTimings) -> Iterator[InstallationCheck]:
    """One result a question, as soon as it is known."""
    for namespace in settings.namespaces or ("",):
        yield consumers(api, namespace)
    if settings.lease is not None:
        yield leader(api, settings.lease, timings)


def consumers(api: ApiServer, namespace: str) -> InstallationCheck:
    """Whether KinesisConsumers of a namespace ("": of all) can be listed."""
    question = f"KinesisConsumers in {namespace or 'all namespaces'}"
    try:
        listed = api.versions(CONSUMER_KIND, namespace, "")
    except ApiError as error:
        todo = "Install the CRD (crds.install, or crds/ of the project), and give the operator's account its permissions (rbac.create)"
        return InstallationCheck(question, f"the API server does not list them: {error}", todo)
    return InstallationCheck(question, f"{len(listed)} listed")


def leader(api: ApiServer, lease: tuple[str, str], timings: WaitTimings) -> InstallationCheck:
    """Whether a holder renews the Lease, before the deadline."""
    question = f"the Lease {'/'.join(lease)}"
    end, first = timings.clock() + timings.deadline, ""
    while True:
        holder, version, error = _read_lease(api, lease)
        if holder and first and version != first:
            return InstallationCheck(question, f"{holder} renews it")
        first = first or version
        if timings.clock() >= end:
            what = error or (f"{holder} holds it, and did not renew it for {timings.deadline:.0f} s" if holder else "nobody holds it")
            return InstallationCheck(question, what, "Read the log of the operator's pods: docs/runbooks.md, Nobody leads")
        timings.sleep(PAUSE)


def _read_lease(api: ApiServer, lease: tuple[str, str]) -> tuple[str, str, str]:
    """Holder, version, and why there is neither."""
    try:
        body = api.get("Lease", *lease)
    except ApiError as error:
        return "", "", str(error)
    if body is None:
        return "", "", ""
    return (body.get("spec") or {}).get("holderIdentity") or "", body["metadata"]["resourceVersion"], ""


def main() -> int:
    """Print the results; 1 if one of them is bad."""
    failed = False
    for result in results(ApiServer(connect()), read(os.environ), WaitTimings()):
        sys.stdout.write(f"{result}\n")
        sys.stdout.flush()
        failed = failed or bool(result.todo)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
