"""The last release made it; the new one takes it over: no pod and no Job is touched, and nobody waits. Both come from a registry, as for a user."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cluster_bench import Bench
from operating import IN, helm, is_led, ready
from published import Published
from rules_world import Subject, World, world

from sluice_lab import places
from sluice_lab.machine import images
from sluice_lab.scenario import kcl_table
from sluice_lab.scenario.installing import RELEASE
from sluice_lab.steps import step

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

LAST = "988977f9"  # until there is a release, a commit of its own form: tests/operator/released is of it, too
RUNS, MIGRATES, TAG = "inherited", "inherited-early", "sluice-operator:released-0.1"
OPERATOR = "sluice-operator:before"  # its name in the registry


@dataclass(frozen=True)
class Inherited:
    """A world whose consumers the last release has begun: one runs, of one the migration does. With what there was of them then."""

    world: World
    uids: dict[str, set[str]]
    status: dict[str, dict[str, Any]]

    def subject(self, name: str) -> Subject:
        return self.world.subject(name)

    def now(self, name: str) -> set[str]:
        return uids(self.subject(name))


@pytest.fixture(scope="module")
def released(published: Published, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The last release's chart and its operator, as its own Dockerfile makes it, in the registry; returns how Helm is told of the chart."""
    folder = tmp_path_factory.mktemp("released")
    archive = folder / "source.tar"
    known = subprocess.run(["git", "-C", str(places.REPO), "archive", f"--output={archive}", LAST], check=False, capture_output=True, text=True)
    if known.returncode:
        pytest.skip(f"the last release is not in this clone: {known.stderr.strip()}")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    if bundle := images.own_authority():
        shutil.copy(bundle, folder / "ca.crt")
    with step(f"image {TAG}") as current:
        images.build_image(current, folder, "operator", TAG)
    published.push(TAG, OPERATOR)
    return published.push_chart(folder / "charts" / "sluice")


@pytest.fixture(scope="module")
def inherited(bench: Bench, published: Published, released: tuple[str, ...]) -> Iterator[Inherited]:
    """Back to the last release by its own chart; it starts two consumers that take over a KCL table each; then today's chart and operator."""
    with world(bench, "upgraded", shards=2) as found:
        for name in (RUNS, MIGRATES):
            kcl_table.write(bench.aws.dynamodb, f"{name}-kcl", kcl_table.dump()["description"], found.leases())
        repository, _, tag = f"{published.registry.name}/{OPERATOR}".rpartition(":")
        helm(bench, *released, image={"repository": repository, "tag": tag}, consumer=published.consumers, policy=None)
        bench.apply(
            found.manifest(RUNS, migrateFrom={"table": f"{RUNS}-kcl", "quietSeconds": 1}, replicas=2),
            found.manifest(MIGRATES, migrateFrom={"table": f"{MIGRATES}-kcl", "quietSeconds": 600}),
        )
        runs, migrates = found.subject(RUNS), found.subject(MIGRATES)
        bench.until("Ready, by the last release", lambda: runs.settled(2) and runs.pods("migration", "jobs"))
        bench.until("a migration under way", lambda: [p for p in migrates.pods("migration") if p["status"].get("phase") == "Running"])
        found.put()
        subjects = {RUNS: runs, MIGRATES: migrates}
        before = Inherited(found, {n: uids(one) for n, one in subjects.items()}, {n: one.status for n, one in subjects.items()})
        helm(bench, *published.chart, image=None, consumer=published.consumers)
        bench.until("two replicas of today's operator, one of which leads", lambda: ready(bench, 2) and is_led(bench))
        yield before
        helm(bench)


def uids(subject: Subject) -> set[str]:
    return {body["metadata"]["uid"] for body in subject.left()}


def test_an_upgrade_leaves_a_running_consumer_alone(inherited: Inherited) -> None:
    subject, before = inherited.subject(RUNS), inherited.status[RUNS]
    subject.bench.kubectl("annotate", "kinesisconsumer", RUNS, "upgraded=yes")  # whatever wakes it
    inherited.world.put()
    subject.bench.until("every record", lambda: not inherited.world.missing(RUNS))
    subject.bench.until("a report seen by the new one", lambda: subject.status["stream"]["reportedAt"] > before["stream"]["reportedAt"])
    assert inherited.now(RUNS) == inherited.uids[RUNS]
    after = subject.status
    assert [after[part] for part in ("driver", "restarts", "migration")] == [before[part] for part in ("driver", "restarts", "migration")]
    subject.bench.until("Ready", subject.ready)  # a batch may be late on a busy machine
    assert inherited.world.twice(RUNS) == []


def test_an_upgrade_leaves_a_migration_alone(inherited: Inherited) -> None:
    subject = inherited.subject(MIGRATES)
    subject.patch(replicas=2)
    subject.bench.until("another number seen by the new one", subject.seen)
    assert inherited.now(MIGRATES) == inherited.uids[MIGRATES]
    after, before = subject.status["migration"], inherited.status[MIGRATES]["migration"]
    assert [after[part] for part in ("job", "tries", "state")] == [before[part] for part in ("job", "tries", "state")]
    assert subject.attempts() == 0


def test_a_rollback_leaves_both_alone_too(inherited: Inherited, published: Published) -> None:
    subject = inherited.subject(RUNS)
    subject.bench.cluster.helm("rollback", RELEASE, IN, "--wait", "--timeout=3m")
    for back in (False, True):
        if back:
            helm(subject.bench, *published.chart, image=None, consumer=published.consumers)
        before = subject.status["stream"]["reportedAt"]
        inherited.world.put()
        subject.bench.until("a report that is heard", lambda heard=before: subject.status["stream"]["reportedAt"] > heard)
        subject.bench.until("every record", lambda: not inherited.world.missing(RUNS))
        assert {name: inherited.now(name) for name in (RUNS, MIGRATES)} == inherited.uids
        assert subject.status["restarts"]["count"] == 0
    subject.bench.until("two replicas of today's operator, one of which leads", lambda: ready(subject.bench, 2) and is_led(subject.bench))
    subject.bench.until("Ready", lambda: subject.settled(2))
    assert inherited.world.twice(RUNS) == []


def test_what_was_inherited_is_scaled_and_deleted_like_any_other(inherited: Inherited) -> None:
    subject = inherited.subject(RUNS)
    subject.scale(1)
    subject.bench.until("one executor fewer", lambda: subject.settled(1) and len(inherited.now(RUNS)) == len(inherited.uids[RUNS]) - 1)
    assert inherited.now(RUNS) < inherited.uids[RUNS]
    subject.delete()
    inherited.subject(MIGRATES).delete()
