"""A text in an object is hidden unless its field is known or its form is harmless; free text is searched, however it is disguised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_kubectl.views.known_fields import FREE, KNOWN
from sluice_kubectl.views.secrets import body, text

Json = dict[str, Any]
SECRET = "Hunter2Zq9"
CRDS = [Path(__file__).parents[3] / "crds" / f"{plural}.sluice.dev.yaml" for plural in ("kinesisconsumers", "kinesisconsumerpools")]
PLACES: tuple[Json, ...] = (
    *({"spec": {"pipeline": {"env": [{"name": name, "value": SECRET}]}}} for name in ("SPARK_DRIVER_DB_PASSWORD", "SPARK_EXECUTOR_AUTH_SECRET")),
    {"initContainers": [{"env": [{"name": "SLUICE_API_TOKEN", "value": SECRET}]}]},
    {"sparkConf": {"spark.executorEnv.SPARK_EXECUTOR_TOKEN": SECRET}},
    *({"spec": {"pipeline": {"args": inner}}} for inner in (
        {"env": [f"DB_X={SECRET}"]}, {"variables": {"X": SECRET}}, {"appKey": SECRET}, {"connStr": SECRET}, {"anything": SECRET}, {SECRET: 1},
        {"p": [{"key": "password", "value": SECRET}]}, {"p": [{"property": "fs.s3a.secret.key", "value": SECRET}]}, {"p": [["password", SECRET]]},
        {"h": [{"header": "Authorization", "content": SECRET}]}, {"p": [["password", 4711, SECRET]]}, {"f": f"h:5432:db:u:{SECRET}"},
        {"cfg": json.dumps([{"name": "X", "value": SECRET}])}, {"stream": {"name": SECRET}},
    )),
    {"metadata": {"annotations": {"example.com/note": SECRET}, "labels": {"team": SECRET}}},
    {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": {f"f:{SECRET}": {}}}]}},
    {"spec": {"containers": [{"name": "c", "args": ["-p", SECRET], "command": ["sh", "-c", SECRET], "workingDir": SECRET}]}},
)  # fmt: skip
SAID = (
    *(f"password {SECRET}", f"the password is {SECRET}", f"password is: {SECRET}", f"password -> {SECRET}", f"password := {SECRET}"),
    *(f"machine db login u password {SECRET}", f"ALTER ROLE app WITH PASSWORD '{SECRET}'", f"('password', '{SECRET}')"),
    f"Enter password:\n\n{SECRET}",
    *(f"<property><name>fs.s3a.secret.key</name><value>{SECRET}</value></property>", f'<property name="password" value="{SECRET}"/>'),
    *(f"kubeconfig: |\n  apiVersion: v1\n  x: {SECRET}", f'"credentials": {{\n "user": "a",\n "val": "{SECRET}"\n}}', f"passwords:\n- a\n- {SECRET}"),
    *(f"postgresql://user:{'x' * 320}{SECRET}@db/x", f"jdbc:oracle:thin:scott/{SECRET}@db:1521/x", f"app:{SECRET}@tcp(db:3306)/orders"),
    f"u:{SECRET}@host",
    *(f"pass\x1b[0mword={SECRET}", f"pass\u200bword={SECRET}", f"password\uff1d{SECRET}", f"?pass%77ord={SECRET}", f"access%5Ftoken={SECRET}"),
    *(f"{name}={SECRET}" for name in ("appKey", "consumerKey", "fernet_key", "connStr", "routing_key", "writeKey", "privkey", "certKey")),
    *(f"Password for user bob: {SECRET}", f"(password,{SECRET})", f"the token is {SECRET}", f"api key: {SECRET}", f"mysql -u root -p{SECRET}"),
    *(f"password\\u003d{SECRET}", f"password&#61;{SECRET}", f"BasicAWSCredentials(u, {SECRET})", f"password: # old\n  {SECRET}"),
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{SECRET}\n-----END PGP PRIVATE KEY BLOCK-----",
)  # fmt: skip
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TOKENS = (
    *(AWS, f"{AWS}.", f"x_{AWS}", f"k={AWS.replace('/', '%2F')}", f"({AWS})",
      "IQoJb3JpZ2luX2VjEJr//////////wEaCXVzLWVhc3QtMSJHMEUCIQD" + "a1B2" * 40),
    *("dckr_pat_abcdefghijklmnopqrstuvwxyz1", "GOCSPX-abcdefghijklmnopqrstuvwx12", "glsa_abcdefghijklmnopqrstuvwxyz123456_abcdef12"),
    *("abc8Q~abcdefghijklmnopqrstuvwxyz1234567890", "ATATT3xFfGF0abcdefghijklmnopqrstuvwxyz", "glrt-abcdefghijklmnopqrstuv",
      "glptt-abcdefghijklmnopqrst"),
    *("LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFb3dJQkFBS0NBUUVB", "AGE-SECRET-KEY-1" + "Q" * 58,
      "k3J9xQ7mB2vL5nR8tZ4w", "9f86d081884c7d659a2feaa0c55ad015"),
    "https://discord.com/api/webhooks/1234567890/abcdefghijklmnopqrstuvwxyz",
)  # fmt: skip
KEPT = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3",
    "\tat org.apache.spark.sql.execution.streaming.MicroBatchExecution.$anonfun$runActivatedStream$2(MicroBatchExecution.scala:299)",
    "\tat org.apache.hadoop.fs.s3a.commit.AbstractS3ACommitterFactory.createOutputCommitter(AbstractS3ACommitterFactory.java:50)",
    '  File "/usr/local/lib/python3.11/site-packages/sluice_consumer/batches/loop.py", line 120, in run',
    "pod orders-driver-1 uid 5f0c1f0e-8f4b-4c63-9a51-0d9f7c2b1a3e on ip-10-1-2-3.eu-west-1.compute.internal at 2026-11-21T10:00:03.123456Z",
    "image registry.example/example/orders:1.4.2@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "ConditionalCheckFailedException: row shardId-000000000003 has generation 17; expected 16; batch 42 open since 12s",
    "password authentication failed for user; no password in Secret shop/orders",
    'Pod "orders-1-exec-2" is forbidden: exceeded quota: compute, requested: memory=2Gi, used: memory=9Gi, limited: memory=10Gi',
)


@pytest.mark.parametrize("found", PLACES, ids=json.dumps)
def test_a_text_of_an_unknown_field_is_hidden(found: Json) -> None:
    for each in (found, {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(found)}}}, [found]):
        assert SECRET not in json.dumps(body(each))


@settings(max_examples=100)
@given(st.lists(st.text(st.characters(codec="ascii", categories=["L"]), min_size=3, max_size=8), min_size=1, max_size=4))
def test_whatever_an_unknown_field_is_called_its_text_is_hidden(keys: list[str]) -> None:
    inner: Any = "a plain sentence"
    for key in reversed(keys):
        inner = {key: inner}
    assert "a plain sentence" not in json.dumps(body({"spec": {"pipeline": {"args": inner}}}))
    assert "a plain sentence" not in json.dumps(body({"spec": {"noSuchField": inner}}))


@pytest.mark.parametrize("said", SAID, ids=lambda said: said[:30])
def test_a_named_secret_is_hidden_in_free_text(said: str) -> None:
    for each in (said, f"12:00:00 INFO {said}", json.dumps({"msg": said}), f"before\n{said}\nafter"):
        assert SECRET not in text(each)
    assert SECRET not in json.dumps(body({"status": {"conditions": [{"message": said}]}}))


@pytest.mark.parametrize("said", TOKENS)
def test_a_token_is_hidden_in_free_text(said: str) -> None:
    secret = max(said.strip("().").removeprefix("x_").removeprefix("k=").split("/"), key=len)[-12:]
    for each in (said, f"got {said} here", json.dumps({"msg": said})):
        assert secret not in text(each)


@pytest.mark.parametrize("said", KEPT)
def test_what_a_maintainer_needs_is_kept(said: str) -> None:
    assert text(said) == said
    assert json.loads(text(json.dumps({"msg": said}))) == {"msg": said}


def test_numbers_flags_times_and_sizes_are_shown_below_any_key() -> None:
    args = {"rate": 12, "on": True, "size": "4g", "every": "30s", "since": "2026-11-21T10:00:00Z", "mode": "append", "path": "s3://bucket/x"}
    found = body({"spec": {"pipeline": {"args": args}}})["spec"]["pipeline"]["args"]
    assert found == args | {"path": "<hidden: text of 13 characters>"}


def texts(schema: Json, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path] if schema.get("type") == "string" else []
    for key, each in (schema.get("properties") or {}).items():
        found += texts(each, (*path, key))
    return found + texts(schema["items"], path) if "items" in schema else found


@pytest.mark.parametrize("crd", CRDS, ids=lambda path: path.stem)
def test_each_text_of_a_resource_that_is_no_users_own_is_known(crd: Path) -> None:
    """Else a maintainer would miss a field that was added."""
    versions = yaml.safe_load(crd.read_text())["spec"]["versions"]
    paths = [
        path for path in texts(versions[0]["schema"]["openAPIV3Schema"]) if FREE.isdisjoint(path) and "env" not in path and "envFrom" not in path
    ]
    assert len(paths) > 30
    assert {key for path in paths for key in path} - KNOWN - {"configMap", "subPathExpr"} == set()


def nested(levels: int, texts_: int) -> str:
    said = "[" * levels + "]" * levels
    for _ in range(texts_):
        said = "[" * levels + json.dumps(said) + "]" * levels
    return said


@pytest.mark.parametrize("said", [nested(96, 5), nested(40, 9), nested(2, 10), nested(900, 1), "[" * 100_000])
def test_json_in_json_of_any_depth_ends_no_report(said: str) -> None:
    assert isinstance(text(said), str)
    json.dumps(body({"metadata": {"annotations": {"sluice.dev/x": said, "x": said}}}))
