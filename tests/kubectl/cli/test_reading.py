"""Commands that read: what a person sees, what a script gets, and what is said where there is nothing to see."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import troubles
from rich.console import Console
from scene import NOW, WIDTH, Elsewhere, Scene, resource

from sluice_kubectl.api.errors import NothingThere
from sluice_kubectl.api.person import Person
from sluice_kubectl.cli.edge import Terminal
from sluice_kubectl.cli.reading import live
from sluice_kubectl.screens.fleet import fleet
from sluice_kubectl.views.consumer import consumer
from sluice_operator.cluster.port import Conflict, Rejected, Unavailable

SCRAPE = """# TYPE sluice_shard_millis_behind_latest gauge
sluice_shard_millis_behind_latest{shard="shardId-000000000000"} 0.0
sluice_shard_millis_behind_latest{shard="shardId-000000000001"} 133000.0
# TYPE sluice_shard_retention_used_ratio gauge
sluice_shard_retention_used_ratio{shard="shardId-000000000001"} 0.25
"""


def raising(error: Exception) -> Any:
    def call(*_arguments: Any) -> None:
        raise error

    return call


def rows(said: str) -> list[list[str]]:
    lines = [line for line in said.splitlines() if line.strip()]
    head = next(number for number, line in enumerate(lines) if "NAME" in line)
    return [line.split() for line in lines[head + 1 :]]


@pytest.fixture
def three(orders: Scene) -> Scene:
    """One that works and is behind, one that needs a person, one that starts in another namespace."""
    orders.put(resource("migration_failed", name="clicks"))
    orders.put(resource("starting", name="views", namespace="web"))
    stream = orders.get()["status"]["stream"] | {"millisBehindLatest": 133_000, "recordsPerSecond": 52.1}
    orders.cluster.set_status("KinesisConsumer", "default", "orders", {"stream": stream})
    return orders


def test_status_shows_first_who_needs_a_person(three: Scene) -> None:
    said = three.run("status", "-A").said
    assert said.splitlines()[0] == "3 consumers · 1 ready · 1 needs attention · farthest behind: orders, 2m13s"
    assert [row[:4] for row in rows(said) if row[0] in {"default", "web"}] == [
        ["default", "clicks", "Failed", "False"],
        ["web", "views", "Starting", "False"],
        ["default", "orders", "Running", "True"],
    ]


def test_status_is_of_the_namespace(three: Scene) -> None:
    assert [row[0] for row in rows(three.run("status", "-n", "web").said) if row[0] in {"orders", "clicks", "views"}] == ["views"]


def test_status_says_of_a_consumer_that_fails_why_and_what_to_do(three: Scene) -> None:
    said = " ".join(three.run("status").said.split())
    for word in ("MigrationFailed:", "row 'x' is unknown.", "sluice.dev/retry."):
        assert word in said


@pytest.mark.parametrize("name", [[], ["orders"]])
def test_status_says_why_a_consumer_that_works_needs_attention(name: list[str]) -> None:
    """Ready and Stalled: executors are missing, and batches continue. The list counted it, and named no reason."""
    said = " ".join(troubles.scene("executors_overdue").run("status", *name).said.split("Conditions")[0].split())
    assert "Unschedulable: 2 executors ready, 4 wanted" in said


@pytest.mark.parametrize("trouble", ["source_moved", "retention_near"])
def test_a_consumer_whose_records_are_in_danger_needs_attention(trouble: str) -> None:
    assert " · 1 needs attention" in troubles.scene(trouble).run("status").said.splitlines()[0]


def test_a_mark_that_stays_needs_no_attention() -> None:
    """Its alert has called somebody, and no repair takes it away."""
    assert "attention" not in troubles.scene("data_loss_suspected").run("status").said.splitlines()[0]


@pytest.mark.parametrize("name", [[], ["orders"]])
def test_status_says_how_much_a_run_that_ended_has_read(scene: Scene, name: list[str]) -> None:
    scene.put(resource("completed"))
    said = " ".join(scene.run("status", *name).said.split())
    assert "Completed" in said
    assert "1204 records in 31 batches" in said


def test_status_for_scripts_has_what_the_screen_has(three: Scene) -> None:
    found = json.loads(three.run("status", "-A", "-o", "json").said)
    assert [one["name"] for one in found] == ["clicks", "views", "orders"]
    assert found[2]["figures"]["lagMillis"] == 133_000
    assert found[2]["table"] == "sluice_default_orders"
    assert found[0]["stalled"] is True


def test_status_of_an_empty_namespace_says_where_to_look(scene: Scene) -> None:
    assert "next: run `kubectl sluice status -A`, or apply one" in scene.run("status").said


def test_status_of_an_empty_cluster_does_not_send_where_one_is(scene: Scene) -> None:
    said = scene.run("status", "-A").said
    assert said == "no KinesisConsumers in any namespace; next: apply one (docs: examples/README.md)\n"


def test_a_namespace_that_is_not_there_is_told(scene: Scene) -> None:
    told = scene.run("status", "orders", "-n", "absent").told
    assert "in namespace absent, because the namespace does not exist; next: status --all-namespaces" in told

    def refused(kind: str, *_arguments: Any) -> None:
        if kind == "Namespace":
            raise Rejected("Forbidden", "cannot get namespaces")

    told = scene.run("status", "orders", "-n", "absent", cluster=Elsewhere(scene.cluster, get=refused)).told
    assert "in namespace absent; next: status --all-namespaces" in told


def test_status_of_one_has_its_pods_and_the_last_five_events(orders: Scene) -> None:
    for minute in range(7):
        orders.event("Scaling", f"number {minute}", f"2026-11-21T10:0{minute}:00Z")
    said = orders.run("status", "orders").said
    assert [word for word in ("orders-driver-1", "orders-1-exec-1", "orders-1-exec-2") if word in said] == [
        "orders-driver-1",
        "orders-1-exec-1",
        "orders-1-exec-2",
    ]
    assert [line.split()[-1] for line in said.splitlines() if "Scaling" in line] == ["2", "3", "4", "5", "6"]


def test_status_of_one_shows_conditions_that_have_something_to_say(scene: Scene) -> None:
    scene.put(resource("driver_overdue"))
    shown = [line.split()[0] for line in scene.run("status", "orders").said.partition("Conditions\n")[2].splitlines()[1:] if line[2:3].isalpha()]
    assert shown == ["Stalled", "Draining", "DriverHealthy"]


def test_a_consumer_between_two_batches_says_that_none_is_open(orders: Scene) -> None:
    stream = orders.get()["status"]["stream"]
    orders.cluster.set_status("KinesisConsumer", "default", "orders", {"stream": stream | {"batch": 7, "openBatch": None, "batchAt": None}})
    assert "batch 7 committed, none open" in orders.run("status", "orders").said


def test_a_lag_of_a_silent_driver_says_how_old_it_is(three: Scene) -> None:
    """After 90 s, when the operator calls it silent."""
    stream = three.get()["status"]["stream"] | {"reportedAt": "2026-11-21T10:05:30Z"}
    three.cluster.set_status("KinesisConsumer", "default", "orders", {"stream": stream})
    assert "2m13s (5m00s ago)" in three.run("status").said


def test_a_typing_error_is_met_by_the_name_that_was_meant(orders: Scene) -> None:
    answer = orders.run("status", "oders")
    assert answer.exit_code == 65
    assert answer.told == "NothingThere (exit 65) there is no KinesisConsumer oders in namespace default; did you mean orders?\n"


def test_a_name_like_no_other_is_met_by_a_list(orders: Scene) -> None:
    assert "next: one of orders" in orders.run("restart", "xyz").told


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Conflict("the server could not find the requested resource"), 65, "the cluster does not know KinesisConsumer; next: check the context"),
        (Rejected("Forbidden", 'User "eve" cannot list resource'), 65, "next: ask for that permission, or name a namespace with -n"),
        (
            Unavailable("connection refused"),
            1,
            "no answer to list KinesisConsumers in namespace default: connection refused; next: try kubectl version",
        ),
        (Unavailable("Unauthorized"), 1, "next: log in again"),
    ],
)
def test_what_the_api_server_refuses_is_a_sentence_with_a_next_step(scene: Scene, error: Exception, code: int, words: str) -> None:
    answer = scene.run("status", cluster=Elsewhere(scene.cluster, list=raising(error)))
    assert (answer.exit_code, answer.said) == (code, "")
    assert words in answer.told


def test_a_watch_looks_again_and_survives_an_answer_that_fails_to_come(orders: Scene) -> None:
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, force_terminal=False)
    looks = iter([None, Unavailable("connection refused")])
    answered = []

    def look() -> Any:
        answered.append(1)
        cluster = Elsewhere(orders.cluster, list=lambda *_: None)
        if error := next(looks):
            cluster = Elsewhere(orders.cluster, list=raising(error))
        return fleet([consumer(body) for body in person(orders, cluster).consumers()], NOW, namespaces=False)

    live(Terminal(lambda _: person(orders, orders.cluster), lambda: NOW, console, console), look, iter([None] * 2))
    assert len(answered) == 2
    assert "1 consumer · 1 ready" in out.getvalue()
    assert "10:10:30Z no answer to list KinesisConsumers in namespace default: connection refused" in out.getvalue()


def test_a_watch_ends_when_nothing_is_there_any_more(orders: Scene) -> None:
    console = Console(file=io.StringIO(), width=WIDTH)
    with pytest.raises(NothingThere):
        live(Terminal(lambda _: person(orders, orders.cluster), lambda: NOW, console, console), raising(NothingThere("gone")), iter([None] * 3))


def person(scene: Scene, cluster: Any) -> Any:
    return Person(cluster, scene.texts, "default")


def test_lag_shows_those_farthest_behind_first(three: Scene) -> None:
    assert [row[:2] for row in rows(three.run("lag").said)] == [["orders", "2m13s"], ["clicks", "-"]]


def test_shards_show_the_drivers_figures(orders: Scene) -> None:
    orders.texts.scrapes["orders-driver-1"] = SCRAPE
    said = orders.run("shards", "orders").said
    assert [line.split()[:3] for line in said.splitlines() if line.startswith("shardId")] == [
        ["shardId-000000000001", "2m13s", "25%"],
        ["shardId-000000000000", "0s", "-"],
    ]
    found = json.loads(orders.run("shards", "orders", "-o", "json").said)["shards"]
    assert [(one["lagMillis"], one["holder"]) for one in found] == [(133_000, "orders-driver-1"), (0, "orders-driver-1")]


def test_shards_without_figures_say_how_to_get_them(orders: Scene, scene: Scene) -> None:
    said = orders.run("shards", "orders").said
    assert "default/orders: 4 open, 0 ended, 4 held" in said
    assert 'lag by shard: orders-driver-1 is gone: pods "orders-driver-1:9404" not found; next: try again' in said
    scene.put(resource("starting", name="views"))
    assert "lag by shard: no driver runs" in scene.run("shards", "views").said


def test_shards_of_a_table_without_credentials_say_so(orders: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    answer = orders.run("shards", "orders", "--table", "--dynamodb-endpoint", "http://127.0.0.1:1")
    assert answer.exit_code == 65
    assert "checkpoint table sluice_default_orders in eu-west-1:" in answer.told
    assert "next: are these the right AWS credentials and account?" in answer.told


def test_events_are_those_of_the_resource_and_in_order(orders: Scene) -> None:
    orders.put(resource("starting", name="views"))
    orders.event("DriverReady", "4 open shards", "2026-11-21T10:00:06Z")
    orders.event("DriverStarting", "attempt 1", "2026-11-21T10:00:03Z")
    orders.event("Accepted", "taken over", "2026-11-21T10:00:01Z", name="views")
    assert [one["reason"] for one in json.loads(orders.run("events", "orders", "-o", "json").said)] == ["DriverStarting", "DriverReady"]


def test_logs_are_the_drivers(orders: Scene) -> None:
    orders.texts.logs["orders-driver-1"] = [f"line {number}" for number in range(300)]
    lines = orders.run("logs", "orders").said.splitlines()
    assert (len(lines), lines[-1]) == (200, "line 299")
    assert orders.texts.asked[-1].container == "driver"
    assert len(orders.run("logs", "orders", "--tail", "-1").said.splitlines()) == 300


def _made(pod: dict[str, Any], minute: str) -> dict[str, Any]:
    return pod | {"metadata": pod["metadata"] | {"creationTimestamp": f"2026-11-21T10:{minute}:00Z"}}


def test_logs_and_shards_are_of_the_driver_that_works_and_not_of_its_standby(orders: Scene) -> None:
    """The standby is newer, and reads nothing. `--pod` has its log."""
    orders.pod("orders-driver-2", "orders", "driver")
    standby = {"attempt": 2, "pod": "orders-driver-2", "state": "Starting", "since": "2026-11-21T10:10:00Z"}
    later = [_made(one, "10" if one["metadata"]["name"] == "orders-driver-2" else "00") for one in orders.cluster.list("Pod", "default", {})]
    newer: Any = Elsewhere(orders.cluster)
    newer.list = lambda kind, *rest: later if kind == "Pod" else orders.cluster.list(kind, *rest)
    orders.texts.logs |= {"orders-driver-1": ["works"], "orders-driver-2": ["stands by"]}
    orders.texts.scrapes |= {"orders-driver-1": SCRAPE, "orders-driver-2": ""}
    orders.cluster.set_status("KinesisConsumer", "default", "orders", {"standby": standby})
    assert orders.run("logs", "orders", cluster=newer).said == "works\n"
    assert orders.run("logs", "orders", "--pod", "orders-driver-2", cluster=newer).said == "stands by\n"
    assert "2m13s" in orders.run("shards", "orders", cluster=newer).said


def test_logs_of_a_role_without_a_pod_name_those_that_there_are(orders: Scene) -> None:
    answer = orders.run("logs", "orders", "--role", "migration")
    assert answer.exit_code == 65
    assert "orders has no migration pod; its pods: orders-driver-1 (driver), orders-1-exec-1 (executor)" in answer.told
