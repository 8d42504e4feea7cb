"""The archive for support: what is in it, what is not, and what was not to be had."""

from __future__ import annotations

import json
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from scene import Elsewhere, Scene

from sluice_kubectl.views import secrets
from sluice_kubectl.views.secrets import HIDDEN
from sluice_operator.cluster.port import Rejected


def contents(path: Path) -> dict[str, str]:
    with tarfile.open(path) as tar:
        return {member.name.partition("/")[2]: file.read().decode() for member in tar if (file := tar.extractfile(member))}


@pytest.fixture
def told(orders: Scene) -> Scene:
    for number, pod in enumerate(("orders-driver-1", "orders-1-exec-1", "orders-1-exec-2")):
        orders.texts.logs[pod] = [f"line {number}", "password=hunter2"]
    orders.cluster.edit(orders.get(), {"spec": {"sparkConf": {"spark.hadoop.fs.s3a.secret.key": "hunter2"}}})
    orders.event("DriverFailed", "the driver ended", "2026-11-21T10:00:03Z", warning=True)
    return orders


def test_a_report_has_all_that_is_known_and_no_secret(told: Scene, tmp_path: Path) -> None:
    answer = told.run("report", "orders", "--file", str(tmp_path / "r.tar.gz"))
    assert answer.exit_code == 0
    found = contents(tmp_path / "r.tar.gz")
    assert set(found) == {"consumer.json", "pods.json", "events.json", "jobs.json", "status.txt", "report.txt"}
    assert "hunter2" not in "".join(found.values())
    assert "DriverFailed" in found["status.txt"]


def test_logs_are_in_a_report_only_if_they_are_asked_for(told: Scene, tmp_path: Path) -> None:
    """As they were written; the help says so."""
    told.run("report", "orders", "--logs", "--file", str(tmp_path / "r.tar.gz"))
    found = contents(tmp_path / "r.tar.gz")
    assert {name for name in found if name.startswith("logs/")} == {
        f"logs/{pod}.log" for pod in ("orders-driver-1", "orders-1-exec-1", "orders-1-exec-2")
    }
    assert found["logs/orders-driver-1.log"] == "line 0\npassword=hunter2\n"


def test_only_its_owner_may_read_a_report(told: Scene, tmp_path: Path) -> None:
    told.run("report", "orders", "--file", str(tmp_path / "r.tar.gz"))
    assert stat.S_IMODE((tmp_path / "r.tar.gz").stat().st_mode) == 0o600


def test_a_report_overwrites_nothing(told: Scene, tmp_path: Path) -> None:
    (tmp_path / "r.tar.gz").write_text("mine")
    answer = told.run("report", "orders", "--file", str(tmp_path / "r.tar.gz"))
    assert answer.exit_code == 1
    assert "next: name another file with --file" in answer.told
    assert (tmp_path / "r.tar.gz").read_text() == "mine"


def test_what_may_not_be_read_is_named_and_the_rest_is_there(told: Scene, tmp_path: Path) -> None:
    def refused(kind: str, *_arguments: Any) -> None:
        if kind == "Pod":
            raise Rejected("Forbidden", "cannot list pods")

    answer = told.run("report", "orders", "--file", str(tmp_path / "r.tar.gz"), cluster=Elsewhere(told.cluster, list=refused))
    assert answer.exit_code == 0
    found = contents(tmp_path / "r.tar.gz")
    assert "pods.json" not in found
    assert "missing pods.json: the API server refused to list pods in namespace default" in found["report.txt"]
    assert "missing pods.json" in answer.told
    assert "events.json" in found


def test_a_container_that_started_again_has_two_logs(told: Scene, tmp_path: Path) -> None:
    """The one before says why."""
    status = {"phase": "Running", "containerStatuses": [{"ready": True, "restartCount": 2, "state": {"running": {}}}]}
    told.cluster.set_status("Pod", "default", "orders-driver-1", status)
    told.run("report", "orders", "--logs", "--file", str(tmp_path / "r.tar.gz"))
    assert "logs/orders-driver-1.previous.log" in contents(tmp_path / "r.tar.gz")
    assert any(request.previous for request in told.texts.asked)


def test_a_part_that_cannot_be_made_safe_is_named_and_the_archive_is_written(told: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = secrets.body

    def failing(value: Any, *rest: Any) -> Any:
        if isinstance(value, list) and any(isinstance(each, dict) and "nodeName" in str(each.get("spec")) for each in value):
            raise RecursionError
        return real(value, *rest)

    monkeypatch.setattr(secrets, "body", failing)
    answer = told.run("report", "orders", "--file", str(tmp_path / "r.tar.gz"))
    assert answer.exit_code == 0
    found = contents(tmp_path / "r.tar.gz")
    assert "pods.json" not in found
    assert "missing pods.json: it could not be made safe to send (RecursionError)" in found["report.txt"]
    assert {"consumer.json", "events.json", "status.txt"} <= set(found)


def test_an_annotation_of_any_depth_stops_no_report(told: Scene, tmp_path: Path) -> None:
    said = "[" * 70 + "]" * 70
    for _ in range(6):
        said = "[" * 96 + json.dumps(said) + "]" * 96
    told.cluster.edit(told.get(), {"metadata": {"annotations": {"x": said, "sluice.dev/x": said}}})
    told.texts.logs["orders-driver-1"].append(said)
    answer = told.run("report", "orders", "--file", str(tmp_path / "r.tar.gz"))
    assert answer.exit_code == 0
    assert "consumer.json" in contents(tmp_path / "r.tar.gz")


def test_a_report_has_what_a_maintainer_needs(told: Scene, tmp_path: Path) -> None:
    told.cluster.edit(told.get(), {"spec": {"pipeline": {"image": "registry.example:5000/team/orders:1.4.2"}}})
    body = told.get()
    told.run("report", "orders", "--file", str(tmp_path / "r.tar.gz"))
    found = json.loads(contents(tmp_path / "r.tar.gz")["consumer.json"])
    assert found["status"] == body["status"]
    assert found["spec"] == body["spec"] | {"sparkConf": {"spark.hadoop.fs.s3a.secret.key": HIDDEN}}
    assert found["metadata"]["uid"] == body["metadata"]["uid"]
    pods = json.loads(contents(tmp_path / "r.tar.gz")["pods.json"])
    assert {pod["metadata"]["labels"]["sluice.dev/role"] for pod in pods} == {"driver", "executor"}
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
