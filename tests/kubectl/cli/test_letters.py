"""`dead-letters list|show|redrive NAME`: a folder on emulated S3 (moto, over HTTP), and a pod in a cluster in memory."""

from __future__ import annotations

import itertools
import json
import shlex
from dataclasses import replace
from typing import Any

import boto3
import page_blocks
import pytest
from pooled import HOST, pooled
from scene import Elsewhere, Scene

from sluice_checkpoints.dynamodb.table import DynamoTable, Endpoint, client
from sluice_checkpoints.letters.letter import DeadLetter
from sluice_checkpoints.protocol.rows import ConsumerRow
from sluice_checkpoints.protocol.table import Put
from sluice_kubectl.cli import letters
from sluice_operator.cluster.port import Unavailable

Json = dict[str, Any]
ERROR = "Traceback (most recent call last):\nValueError: [no]"
LETTER = DeadLetter("c-1", "orders", "shardId-000000000000", "49", 0, 1_700_000_000_123, "k", b"\xff[red]{", 7, 3, ERROR)
OTHERS = replace(LETTER, consumer="c-2")
TABLE, REGION = "sluice_default_orders", "eu-west-1"
ARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"
POD = "orders-redrive-20261121101030"


def keeping(scene: Scene, **place: str) -> None:
    scene.cluster.patch("KinesisConsumer", "default", "orders", {"spec": {"onError": {"deadLetter": place}}})


@pytest.fixture
def stored(orders: Scene, endpoint: str) -> tuple[Scene, list[str]]:
    s3 = boto3.client("s3", region_name=REGION, endpoint_url=endpoint)
    s3.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": REGION})
    for one in (LETTER, OTHERS):
        s3.put_object(Bucket="lake", Key=f"dead-letters/{one.path}", Body=one.to_json())
    boto3.client("dynamodb", region_name=REGION, endpoint_url=endpoint).create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    DynamoTable(TABLE, client(Endpoint(REGION, endpoint))).write(Put(ConsumerRow("c-1", ARN, 1).to_item(), ()))
    keeping(orders, path="s3a://lake/dead-letters")
    return orders, ["--s3-endpoint", endpoint, "--dynamodb-endpoint", endpoint]


def test_list_has_the_letters_of_the_consumer_alone(stored: tuple[Scene, list[str]]) -> None:
    scene, endpoints = stored
    answer = scene.run("dead-letters", "list", "orders", "-o", "json", *endpoints)
    assert answer.exit_code == 0, answer.told
    assert [one["name"] for one in json.loads(answer.said)["letters"]] == [LETTER.path]
    assert "1 dead letter\n" in scene.run("dead-letters", "list", "orders", *endpoints).said


def test_the_commands_of_the_page_are_those(stored: tuple[Scene, list[str]]) -> None:
    """docs/kubectl.md, "dead-letters", word by word: list, show with a name of it, and redrive up to the pod that it wants to copy."""
    scene, endpoints = stored
    lines = page_blocks.beginning("docs/kubectl.md", "kubectl sluice dead-letters").splitlines()
    listing, showing, redriving = (shlex.split(line, comments=True)[2:] for line in lines)
    name = json.loads(scene.run(*listing, "-o", "json", *endpoints).said)["letters"][0]["name"]
    assert scene.run(*[name if word == "NAME" else word for word in showing], *endpoints[:2]).exit_code == 0
    assert redriving[3:] == ["[NAME", "…]"]
    asked: list[tuple[str, str]] = []

    def gone(kind: str, _namespace: str, pod: str) -> None:
        asked.append((kind, pod))
        if kind == "Pod":
            raise Unavailable("connection refused")

    assert scene.run(*redriving[:3], name, cluster=Elsewhere(scene.cluster, get=gone)).exit_code == 1
    assert ("Pod", POD) in asked


def test_the_commands_for_a_folder_are_those_of_their_page(stored: tuple[Scene, list[str]]) -> None:
    """docs/dead-letters.md, word by word: all of the folder without a cluster, and one by a name of the list."""
    scene, (s3_endpoint, address, *_) = stored
    lines = page_blocks.beginning("docs/dead-letters.md", "sluice dead-letters list").splitlines()
    listing, showing = (shlex.split(line, comments=True)[1:] for line in lines)
    listed = scene.run(*listing, "--json", s3_endpoint, address)
    assert listed.exit_code == 0, listed.told
    first, second = (one["name"] for one in json.loads(listed.said)["letters"])
    assert {first, second} == {LETTER.path, OTHERS.path}
    shown = scene.run(*[first if word == "NAME" else word for word in showing], s3_endpoint, address)
    assert "ValueError: [no]" in shown.said, shown.told


def test_show_has_record_and_exception(stored: tuple[Scene, list[str]]) -> None:
    scene, endpoints = stored
    answer = scene.run("dead-letters", "show", "orders", LETTER.path, *endpoints[:2])
    assert answer.exit_code == 0, answer.told
    assert "ValueError: [no]" in answer.said
    refused = scene.run("dead-letters", "show", "orders", "c-1/nowhere.json", *endpoints[:2])
    assert refused.exit_code == 65
    assert "c-1/nowhere.json" in refused.told


def test_a_letter_moves_no_cursor(stored: tuple[Scene, list[str]], endpoint: str) -> None:
    scene, endpoints = stored
    said = "\x1b[2J\x1b[31m\u202e\x9b\rerror\x07"
    strange = replace(LETTER, sequence="50", partition_key=f"{said}\nerror", data=said.encode(), error=f"Traceback\n{said}")
    boto3.client("s3", region_name=REGION, endpoint_url=endpoint).put_object(
        Bucket="lake", Key=f"dead-letters/{strange.path}", Body=strange.to_json()
    )
    listed = scene.run("dead-letters", "list", "orders", *endpoints)
    shown = scene.run("dead-letters", "show", "orders", strange.path, *endpoints[:2])
    for answer in (listed, shown):
        assert answer.exit_code == 0, answer.told
        assert [char for char in answer.said if not char.isprintable() and char != "\n"] == []
    assert shown.said.splitlines().count("error") == 1
    assert "\\x1b[2J" in shown.said
    found = json.loads(scene.run("dead-letters", "show", "orders", strange.path, "-o", "json", *endpoints[:2]).said)
    assert found["error"] == strange.error


@pytest.mark.parametrize("command", [("list", "orders"), ("show", "orders", "x"), ("redrive", "orders")])
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({}, "spec.onError.deadLetter is not set"),
        ({"sqs": "https://sqs.test/1/letters"}, "next: aws sqs receive-message --queue-url https://sqs.test/1/letters"),
        ({"kinesis": "letters"}, "they are records of the stream letters"),
        ({"path": "file:///letters"}, "next: kubectl exec -n default orders-driver-1 -c driver -- python -m sluice_checkpoints dead-letters"),
    ],
)
def test_letters_that_are_in_no_folder_of_everybody_are_refused(orders: Scene, command: tuple[str, ...], place: Json, words: str) -> None:
    keeping(orders, **place)
    before = len(orders.cluster.list("Pod", "default", {}))
    answer = orders.run("dead-letters", *command)
    assert answer.exit_code == 65
    assert (words.replace("sluice_checkpoints dead-letters", "sluice_consumer redrive") if command[0] == "redrive" else words) in answer.told
    assert len(orders.cluster.list("Pod", "default", {})) == before


class Kubelet:
    """Runs the pod of a redrive: it waits for its image at the first look, then has ended."""

    def __init__(self, scene: Scene, code: int) -> None:
        self._scene, self._code, self._looks, self.made = scene, code, itertools.count(), dict[str, Any]()
        scene.texts.logs[POD] = ["redrive 1: 1 letter of c-1 goes through process", "batch 1 of c-1-redrive is processed: 1 letter redriven"]

    def look(self, kind: str, namespace: str, name: str) -> None:
        if kind != "Pod":
            return
        states: list[Json] = [{"waiting": {"reason": "ContainerCreating"}}, {"terminated": {"exitCode": self._code}}]
        state = states[min(next(self._looks), 1)]
        self.made = self._scene.cluster.get(kind, namespace, name) or {}
        self._scene.cluster.set_status(kind, namespace, name, {"phase": "Running", "containerStatuses": [{"name": "redrive", "state": state}]})


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "ticks", lambda: itertools.repeat(None, 5))


@pytest.mark.usefixtures("at_once")
def test_a_redrive_runs_in_a_pod_like_the_drivers_and_the_pod_is_removed(orders: Scene) -> None:
    keeping(orders, path="s3a://lake/dead-letters")
    kubelet = Kubelet(orders, 0)
    answer = orders.run("dead-letters", "redrive", "orders", "c-1/a.json", cluster=Elsewhere(orders.cluster, get=kubelet.look))
    assert answer.exit_code == 0, answer.told
    assert answer.said.splitlines() == orders.texts.logs[POD]
    assert f"{POD} waits: ContainerCreating" in answer.told
    (container,) = kubelet.made["spec"]["containers"]
    assert container["args"][-2:] == ["--", "c-1/a.json"]
    assert orders.cluster.get("Pod", "default", POD) is None


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seats", [["orders-uid.2", "orders-uid.11", "views-uid.99"], ["views-uid.99"]])
def test_a_member_of_a_pool_is_redriven_with_the_configuration_of_its_seat(seats: list[str]) -> None:
    scene = pooled()
    uid = scene.get(name="orders")["metadata"]["uid"]
    notes = {f"seat.sluice.dev/{key.replace('orders-uid', uid)}": json.dumps({"name": key, "config": {"batch": {}}}) for key in seats}
    host = scene.cluster.get("Pod", "default", HOST)
    assert host
    scene.cluster.edit(host, {"metadata": {"annotations": notes | {"sluice.dev/config": '{"sparkConf": {"a": "b"}, "slotShare": 0.25}'}}})
    keeping(scene, path="s3a://lake/dead-letters")
    kubelet = Kubelet(scene, 0)
    answer = scene.run("dead-letters", "redrive", "orders", cluster=Elsewhere(scene.cluster, get=kubelet.look))
    if len(seats) == 1:
        assert answer.exit_code == 65
        assert f"{HOST} has no seat of this consumer that can be read; next: status says where it runs" in answer.told
        return
    assert answer.exit_code == 0, answer.told
    meta = kubelet.made["metadata"]
    assert json.loads(meta["annotations"]["sluice.dev/config"]) == {"name": "orders-uid.11", "batch": {}, "sparkConf": {"a": "b"}}
    assert meta["labels"] == {"app.kubernetes.io/managed-by": "sluice", "sluice.dev/consumer": "orders", "sluice.dev/role": "redrive"}


@pytest.mark.usefixtures("at_once")
def test_the_log_of_a_redrive_moves_no_cursor(orders: Scene) -> None:
    keeping(orders, path="s3a://lake/dead-letters")
    kubelet = Kubelet(orders, 0)
    orders.texts.logs[POD] = ["a \x1b[2J\x1b]0;title\x07b\r", "c\u202e\ud800d"]
    answer = orders.run("dead-letters", "redrive", "orders", cluster=Elsewhere(orders.cluster, get=kubelet.look))
    assert answer.exit_code == 0, answer.told
    assert all(line.isprintable() for line in answer.said.splitlines())
    assert len(answer.said.splitlines()) == 2


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("how", ["--resume", "--give-up"])
def test_how_an_open_redrive_ends_is_handed_on(orders: Scene, how: str) -> None:
    keeping(orders, path="s3a://lake/dead-letters")
    kubelet = Kubelet(orders, 0)
    assert orders.run("dead-letters", "redrive", "orders", how, cluster=Elsewhere(orders.cluster, get=kubelet.look)).exit_code == 0
    assert kubelet.made["spec"]["containers"][0]["args"][-2:] == [how, "--"]


@pytest.mark.usefixtures("at_once")
def test_a_redrive_that_fails_ends_with_the_code_of_its_program(orders: Scene) -> None:
    keeping(orders, path="s3a://lake/dead-letters")
    answer = orders.run("dead-letters", "redrive", "orders", cluster=Elsewhere(orders.cluster, get=Kubelet(orders, 65).look))
    assert answer.exit_code == 65
    assert f"the dead letters were not redriven: {POD} ended with 65" in answer.told
    assert orders.cluster.get("Pod", "default", POD) is None


@pytest.mark.usefixtures("at_once")
def test_a_redrive_whose_api_server_is_gone_goes_on_and_says_where(orders: Scene) -> None:
    keeping(orders, path="s3a://lake/dead-letters")

    def gone(kind: str, _namespace: str, _name: str) -> None:
        if kind == "Pod":
            raise Unavailable("connection refused")

    answer = orders.run("dead-letters", "redrive", "orders", cluster=Elsewhere(orders.cluster, get=gone))
    assert answer.exit_code == 1
    assert f"{POD} continues without this command; next: logs orders --role redrive -f" in answer.told
    assert orders.cluster.get("Pod", "default", POD) is not None


@pytest.mark.usefixtures("at_once")
def test_a_pod_of_that_name_is_left_alone(orders: Scene) -> None:
    """Two redrives of one second: the second is told to come again."""
    keeping(orders, path="s3a://lake/dead-letters")
    orders.pod(POD, "orders", "redrive")
    answer = orders.run("dead-letters", "redrive", "orders")
    assert answer.exit_code == 75
    assert f"there is a pod {POD} already" in answer.told


def test_without_a_driver_there_is_nothing_to_take_rights_from(orders: Scene) -> None:
    """Refused, with what to type instead: a run that reached its end has no driver."""
    keeping(orders, path="s3a://lake/dead-letters")
    driver = orders.cluster.get("Pod", "default", "orders-driver-1")
    assert driver
    orders.cluster.delete("Pod", "default", "orders-driver-1", driver["metadata"]["uid"], 0)
    answer = orders.run("dead-letters", "redrive", "orders", "--resume", "c-1/a b.json")
    assert answer.exit_code == 65
    assert "orders has no driver pod" in answer.told
    assert "sluice dead-letters redrive --config consumer.json --resume 'c-1/a b.json'" in " ".join(answer.told.split())


def test_with_a_path_it_is_the_command_of_the_tables(orders: Scene, tmp_path: Any) -> None:
    file = tmp_path / LETTER.path
    file.parent.mkdir(parents=True)
    file.write_text(LETTER.to_json())
    answer = orders.run("dead-letters", "list", f"--path={tmp_path}", "--json")
    assert answer.exit_code == 0, answer.told
    assert [one["name"] for one in json.loads(answer.said)["letters"]] == [LETTER.path]
