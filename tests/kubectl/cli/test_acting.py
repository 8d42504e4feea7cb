"""Commands that write: one patch, on a condition; else nothing, and a reason."""

from __future__ import annotations

from typing import Any

import pytest
from http_fake import HttpFake
from scene import Elsewhere, Scene, resource

from sluice_operator.cluster.client import ApiServer
from sluice_operator.cluster.port import Rejected, Unavailable


def notes(scene: Scene) -> dict[str, str]:
    found: dict[str, str] = scene.get()["metadata"].get("annotations") or {}
    return found


def test_restart_writes_a_value_that_was_never_there(orders: Scene) -> None:
    answer = orders.run("restart", "orders")
    assert (answer.exit_code, answer.said) == (0, "orders restarts: driver 1 finishes its batch, then the next driver starts\n")
    assert notes(orders) == {"sluice.dev/restart": "2026-11-21T10:10:30Z"}


def test_drain_and_pause_are_undone_by_resume(orders: Scene) -> None:
    orders.run("drain", "orders")
    orders.run("pause", "orders")
    assert (orders.get()["spec"]["suspend"], notes(orders)) == (True, {"sluice.dev/paused": "true"})
    assert orders.run("resume", "orders").said == "orders continues\n"
    assert ("suspend" in orders.get()["spec"], notes(orders)) == (False, {})


def test_retry_asks_for_another_try_of_a_migration(scene: Scene) -> None:
    scene.put(resource("migration_failed"))
    assert scene.run("retry", "orders").exit_code == 0
    assert notes(scene) == {"sluice.dev/retry": "2026-11-21T10:10:30Z"}


def test_what_is_so_already_is_no_error_and_no_write(scene: Scene) -> None:
    before = scene.put(resource("paused"))
    answer = scene.run("pause", "orders")
    assert (answer.exit_code, answer.said) == (0, "orders is paused already\n")
    assert scene.get() == before


def test_a_refused_action_writes_nothing_and_exits_with_65(scene: Scene) -> None:
    before = scene.put(resource("paused"))
    answer = scene.run("restart", "orders")
    assert (answer.exit_code, answer.said) == (65, "")
    assert "next: resume orders" in answer.told
    assert scene.get() == before


def test_a_resource_that_changed_in_between_is_read_and_decided_on_anew(orders: Scene) -> None:
    changes = iter([{"spec": {"replicas": 3}}])

    def meanwhile(*_arguments: Any) -> None:
        if change := next(changes, None):
            orders.cluster.edit(orders.get(), change)

    assert orders.run("restart", "orders", cluster=Elsewhere(orders.cluster, patch=meanwhile)).exit_code == 0
    assert orders.get()["spec"]["replicas"] == 3
    assert notes(orders) == {"sluice.dev/restart": "2026-11-21T10:10:30Z"}


def test_what_is_no_longer_offered_after_a_change_is_not_done(orders: Scene) -> None:
    def meanwhile(*_arguments: Any) -> None:
        orders.cluster.edit(orders.get(), {"metadata": {"annotations": {"sluice.dev/paused": "true"}}})

    answer = orders.run("restart", "orders", cluster=Elsewhere(orders.cluster, patch=meanwhile))
    assert answer.exit_code == 65
    assert notes(orders) == {"sluice.dev/paused": "true"}


def test_a_resource_that_changes_each_time_is_left_alone(orders: Scene) -> None:
    numbers = iter(range(100))

    def meanwhile(*_arguments: Any) -> None:
        orders.cluster.edit(orders.get(), {"spec": {"replicas": 10 + next(numbers)}})

    answer = orders.run("restart", "orders", cluster=Elsewhere(orders.cluster, patch=meanwhile))
    assert answer.exit_code == 75
    assert "nothing was written; next: try again" in answer.told.replace("\n", " ")
    assert notes(orders) == {}
    assert next(numbers) == 3


def test_force_names_pod_and_uid_and_asks(orders: Scene) -> None:
    asked = []
    orders.ask = lambda question: asked.append(question) or False
    uid = orders.get()["status"]["driver"]["uid"]
    answer = orders.run("force", "orders")
    assert answer.exit_code == 65
    assert asked == [f"Remove orders-driver-1 with uid {uid}?"]
    assert "It was not asked to stop yet: restart does that without force." in answer.told.replace("\n", " ")
    assert notes(orders) == {}


def test_force_does_what_was_agreed_on(orders: Scene) -> None:
    orders.ask = lambda _question: True
    assert orders.run("force", "orders").exit_code == 0
    assert notes(orders) == {"sluice.dev/force": orders.get()["status"]["driver"]["uid"]}


def test_force_gives_up_no_driver_that_came_while_it_asked(orders: Scene) -> None:
    def answered(_question: str) -> bool:
        driver = orders.get()["status"]["driver"]
        orders.cluster.set_status("KinesisConsumer", "default", "orders", {"driver": driver | {"pod": "orders-driver-2", "uid": "uid-new"}})
        return True

    orders.ask = answered
    answer = orders.run("force", "orders")
    assert answer.exit_code == 65
    assert notes(orders) == {}


def test_force_gives_up_a_standby_that_hangs_and_not_the_driver_that_works(orders: Scene) -> None:
    driver = orders.get()["status"]["driver"]
    pod = orders.pod("orders-driver-2", "orders", "driver")
    standby = {"attempt": 2, "pod": "orders-driver-2", "uid": pod["metadata"]["uid"], "state": "GivenUp", "since": "2026-11-21T10:10:00Z"}
    orders.cluster.set_status("KinesisConsumer", "default", "orders", {"standby": standby})
    asked: list[str] = []
    orders.ask = lambda question: asked.append(question) or False
    orders.run("force", "orders")
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T10:10:00Z"
    found: Any = Elsewhere(orders.cluster)
    found.list = lambda kind, *rest: [pod] if kind == "Pod" else orders.cluster.list(kind, *rest)
    orders.run("force", "orders", cluster=found)
    assert asked == [
        f"Remove {name} with uid {uid}?" for name, uid in (("orders-driver-1", driver["uid"]), (pod["metadata"]["name"], standby["uid"]))
    ]
    assert orders.run("force", "orders", "--yes", cluster=found).exit_code == 0
    assert notes(orders) == {"sluice.dev/force": standby["uid"]}


def test_force_of_a_pod_that_is_gone_says_so_and_writes_nothing(orders: Scene) -> None:
    """Nobody waits for it: the next look at the status has another pod, or none."""
    pod = orders.cluster.get("Pod", "default", "orders-driver-1")
    assert pod is not None
    orders.cluster.finish_deletion(pod)
    answer = orders.run("force", "orders", "--yes")
    assert answer.exit_code == 65
    assert "orders-driver-1 is already gone" in answer.told
    assert "nothing was written; next: status orders" in answer.told
    assert notes(orders) == {}


def test_force_of_a_pod_that_lost_its_label_is_done(orders: Scene) -> None:
    pod = orders.cluster.get("Pod", "default", "orders-driver-1")
    assert pod is not None
    orders.cluster.edit(pod, {"metadata": {"labels": {"sluice.dev/consumer": None}}})
    assert orders.run("force", "orders", "--yes").exit_code == 0
    assert notes(orders) == {"sluice.dev/force": pod["metadata"]["uid"]}


@pytest.mark.parametrize("name", ["", ".", "..", "orders?x=1", "orders/status", "orders%2Fstatus", "../../pods/x"])
def test_a_name_that_no_resource_may_have_is_told(orders: Scene, name: str) -> None:
    """An empty shell variable, say. Nothing else is read or written in its place."""
    through = ApiServer(HttpFake(orders.cluster))  # type: ignore[arg-type]  # it stands where ApiClient stands
    answer = orders.run("restart", name, cluster=through)
    assert answer.exit_code == 65
    assert f"there is no KinesisConsumer {name!r}" in answer.told
    assert notes(orders) == {}


def test_force_without_a_terminal_wants_yes(orders: Scene) -> None:
    answer = orders.run("force", "orders")
    assert answer.exit_code == 65
    assert "next: repeat it with --yes" in answer.told.replace("\n", " ")
    assert orders.run("force", "orders", "--yes").exit_code == 0


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Rejected("Forbidden", 'User "eve" cannot patch resource "kinesisconsumers"'), 65, "next: ask for that permission"),
        (Rejected("Invalid", "spec.replicas: too many"), 65, "next: correct what the API server names"),
        (Unavailable("timed out"), 1, "The change may have been made: look before you repeat it"),
    ],
)
def test_an_error_of_a_write_says_what_to_do(orders: Scene, error: Exception, code: int, words: str) -> None:
    def raised(*_arguments: Any) -> None:
        raise error

    answer = orders.run("pause", "orders", cluster=Elsewhere(orders.cluster, patch=raised))
    assert answer.exit_code == code
    assert words in answer.told
