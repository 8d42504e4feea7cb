"""What a Prometheus sees of a cluster: every panel of the dashboards has data, and an alert fires and ends. All claims share three consumers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from cluster_bench import Bench
from rules_world import MODULE, World, world
from scraping import RUNBOOKS, Scraper, scraping

from sluice_lab import places
from sluice_lab.aws.proxy import Behaviour, CallOutcome, Upstream, proxy
from sluice_lab.machine import cluster as clusters
from sluice_lab.pictures.answers import choose, queries
from sluice_lab.scenario import kcl_table
from sluice_lab.scenario.installing import NAMESPACE

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ORDERS, VIEWS, PAYMENTS, POOL = "orders", "views", "payments", "small"
POISON, SOME = 5, 16  # a number inside of an aggregate; Kinesis records on both shards
SOURCE, BAD = "payments-kcl", {"checkpoint": {"S": "YESTERDAY"}}
THROTTLED = 0.03  # of the calls to Kinesis
WINDOW, PANELS = "30s", 90  # a panel's interval, and seconds until each has a value
BOARDS = sorted((places.REPO / "charts" / "sluice" / "files" / "dashboards").glob("*.json"))


@dataclass(frozen=True)
class Seen:
    world: World
    scraper: Scraper
    began: float

    def values(self, selector: str, label: str) -> list[str]:
        found: list[str] = self.world.bench.until(selector, lambda: self.scraper.prometheus.values(selector, label), PANELS)
        return found

    def chosen(self, board: dict[str, Any]) -> dict[str, str]:
        wanted = {"name": ORDERS} if any(variable["name"] == "name" for variable in board["templating"]["list"]) else {}
        return choose(board, self.values, WINDOW, **wanted)

    def eventually(self, expressions: set[str]) -> set[str]:
        """Those that had no value at any time since the beginning, though records come."""
        missing, deadline = set(expressions), time.monotonic() + PANELS
        while missing and time.monotonic() < deadline:
            self.world.put(1)
            since = f"{time.time() - self.began:.0f}s"
            missing -= {each for each in missing if self.scraper.prometheus.has(f"max_over_time(({each})[{since}:2s])")}
        return missing


@pytest.fixture(scope="module")
def seen(bench: Bench) -> Iterator[Seen]:
    """One consumer leaves a record out and is killed, one is ended in its drain, and the migration of one fails."""
    host = clusters.host_address(bench.cluster).listen
    with ExitStack() as stack:
        kinesis = stack.enter_context(proxy(Upstream(bench.aws.kinesis_endpoint), host))
        scraper = stack.enter_context(scraping(bench))
        began = time.time()
        found = stack.enter_context(world(replace(bench, aws=replace(bench.aws, kinesis_endpoint=kinesis.endpoint)), "seen", shards=2))
        rows = found.leases()
        kcl_table.write(bench.aws.dynamodb, SOURCE, kcl_table.dump()["description"], [rows[0] | BAD, *rows[1:]])
        bench.apply(orders(found), views(found), payments(found), pool())
        orders_now, views_now = found.subject(ORDERS), found.subject(VIEWS)
        bench.until("both Ready", lambda: orders_now.settled(1) and views_now.settled(1))
        bench.until("both scraped, and the operator", scraper.healthy)
        kinesis.behaviour = Behaviour(CallOutcome.THROTTLED, THROTTLED)
        found.put(SOME)
        found.until("a record left out", lambda: orders_now.condition("PoisonExcluded"))
        bench.until("a batch that does not end", lambda: found.bound(VIEWS))
        bench.kubectl("delete", "pod", *orders_now.uids("driver"), "--grace-period=0", "--force")
        views_now.annotate("restart=1")
        bench.until("the next drivers", lambda: all(each.attempts() == 2 and each.settled(1) for each in (orders_now, views_now)))
        yield Seen(found, scraper, began)


def orders(found: World) -> dict[str, Any]:
    manifest = found.manifest(ORDERS, args={"poison": POISON}, onError={"attempts": 2, "deadLetter": {"path": "file:///letters"}})
    manifest["spec"]["pipeline"]["entrypoint"] = f"{MODULE}:refuse"
    template = manifest["spec"]["driver"]["podTemplate"]["spec"]
    template["volumes"] = [*template["volumes"], {"name": "letters", "emptyDir": {}}]
    (container,) = template["containers"]
    container["volumeMounts"] = [*container["volumeMounts"], {"name": "letters", "mountPath": "/letters"}]
    return manifest


def views(found: World) -> dict[str, Any]:
    """A consumer whose first driver does not come back from `process`, and has two seconds to end."""
    manifest = found.manifest(VIEWS, drainTimeoutSeconds=2)
    manifest["spec"]["pipeline"]["entrypoint"] = f"{MODULE}:hang"
    return manifest


def payments(found: World) -> dict[str, Any]:
    """A consumer that takes over a table with a bad row. Its driver would have a standby for good."""
    kept = {"strategy": "Standby", "standby": "Always"}
    return found.manifest(PAYMENTS, migrateFrom={"table": SOURCE, "format": "KCL", "quietSeconds": 1}, rollout=kept)


def pool() -> dict[str, Any]:
    """A pool that nobody has joined, so it has no pod."""
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "KinesisConsumerPool", "metadata": {"name": POOL}, "spec": {"replicas": 1}}


def test_prometheus_finds_the_operator_and_every_driver(seen: Seen) -> None:
    asked = seen.scraper.prometheus
    assert set(asked.values("sluice_committed_batch", "sluice_dev_consumer")) == {ORDERS, VIEWS}
    assert set(asked.values("sluice_consumer_ready", "name")) == {ORDERS, VIEWS, PAYMENTS}
    assert asked.values("sluice_consumer_ready", "namespace") == [NAMESPACE]
    (one,) = asked.ask("query", query=f'sluice_consumer_open_shards{{name="{ORDERS}"}}')["result"]
    assert int(one["value"][1]) == len(seen.world.stream.shards())


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_every_panel_has_data(seen: Seen, path: Path) -> None:
    board = json.loads(path.read_text(encoding="utf-8"))
    assert seen.eventually(queries(board, seen.chosen(board))) == set()


def test_alerts_name_what_has_happened(seen: Seen) -> None:
    wanted = {f"SluiceDeadLetters/{ORDERS}": "#records-that-cannot-be-processed", "SluiceDrainsForced": "#drains-are-cut-short"}
    found = seen.world.bench.until("both alerts", lambda: (now := seen.scraper.alerts()).keys() >= wanted.keys() and now)
    assert {name: found[name]["runbook_url"] for name in wanted} == {name: RUNBOOKS + heading for name, heading in wanted.items()}


def test_an_alert_asks_for_a_person_and_ends_when_the_person_has_acted(seen: Seen) -> None:
    name, subject = f"SluiceConsumerStalled/{PAYMENTS}", seen.world.subject(PAYMENTS)
    alert = seen.world.bench.until(name, lambda: seen.scraper.alerts().get(name))
    assert (alert["severity"], alert["summary"]) == ("critical", f"KinesisConsumer {NAMESPACE}/{PAYMENTS} is stalled.")
    assert "YESTERDAY" in subject.condition("Stalled")["message"]
    (row, *_) = seen.world.leases()
    seen.world.bench.aws.dynamodb.put_item(TableName=SOURCE, Item=row)
    subject.annotate("retry=1")
    seen.world.bench.until("Ready", lambda: subject.settled(1))
    seen.world.bench.until("no such alert", lambda: name not in seen.scraper.alerts())
    assert seen.scraper.prometheus.has(f'max_over_time(ALERTS{{alertname="SluiceConsumerStalled",name="{PAYMENTS}",alertstate="firing"}}[1h])')


def test_nothing_is_lost_or_kept_twice(seen: Seen) -> None:
    for name, left_out in ((ORDERS, [POISON]), (VIEWS, []), (PAYMENTS, [])):
        seen.world.bench.until(f"every record of {name}", lambda name=name, left_out=left_out: seen.world.missing(name) == left_out)
        assert seen.world.twice(name) == []
