"""A secret at any place of the corpus never leaves in a report: whatever it is, and however its place is nested or quoted."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest
from drawn import TIMES
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sluice_kubectl.views.secrets import body, text

EXAMPLES = 60 * TIMES

Json = dict[str, Any]
PLACE = "PLANTED"
NAMES = (
    *("password", "passwords", "DB_PASSWORD", "DB_PASSWORD_RO", "PASSWORDS", "dbPassword", "userpass", "MYSQL_PWD", "REDISCLI_AUTH", "PGPASSWORD"),
    *("passphrase", "secret", "clientSecret", "secretName", "CLIENT_SECRET_2", "token", "access_token", "refreshToken", "tokens", "GITHUB_TOKEN"),
    *("api_key", "apiKey", "x-api-key", "apikey", "accessKey", "AWS_SECRET_ACCESS_KEY", "privateKey", "private_key_id", "encryption.key"),
    *("fs.azure.account.key.acc.dfs.core.windows.net", "fs.azure.sas.box.acc", "spark.hadoop.fs.s3a.secret.key", "spark.ssl.keyPassword"),
    *("spark.hadoop.javax.jdo.option.ConnectionPassword", "credentials", "google.creds", "authorization", "Cookie", "connectionString", "SENTRY_DSN"),
    *("jwt", "bearer", "AccountKey", "SharedAccessKey", "db.pwd", "signature", "sasl.jaas.auth", "truststorePassword", "webhook_key"),
)  # fmt: skip
OBJECTS: tuple[Json, ...] = (
    *({"spec": {"pipeline": {"args": {name: PLACE}}}} for name in NAMES),
    *({"args": {name: {"value": [PLACE]}}} for name in NAMES),
    *({"args": {name: [{"x": PLACE}]}} for name in NAMES[:5]),
    *({"sparkConf": {name: PLACE}} for name in NAMES),
    *({"env": [{"name": name, "value": PLACE}]} for name in (*NAMES, "X", "DB", "URL", "JAVA_TOOL_OPTIONS", "SPARK_SECRET")),
    {"spec": {"containers": [{"env": [{"value": PLACE, "name": "HARMLESS"}]}]}},
    {"args": {"env": {"ANY": PLACE}}},
    {"sparkConf": {"spark.executorEnv.ANY": PLACE, "spark.kubernetes.driverEnv.ANY": PLACE}},
    {"args": ["--password", PLACE]},
    {"args": ["--user", "me", "-db.password", PLACE, "--verbose"]},
    {"args": [f"--password={PLACE}"]},
    {"command": ["sh", "-c", f"run --token {PLACE}"]},
    {"args": {"volumes": [{"secret": {"secretName": PLACE}}]}},  # references of Kubernetes, and not at their place
    {"args": {"secretKeyRef": {"name": PLACE}}},
    {"args": {"env": [{"valueFrom": {"secretKeyRef": {"name": PLACE}}}]}},
    {"args": {"spec": {"imagePullSecrets": PLACE}}},
    {"spec": {"volumes": [{"secret": {"secretName": "orders", "password": PLACE}}]}},
    {"metadata": {"annotations": {"token": PLACE}, "labels": {"password": PLACE}}},
    {"lifecycle": {"httpGet": {"httpHeaders": [{"name": "X-Any", "value": PLACE}]}}},
)
TEXTS = (
    *(f"{name}={PLACE}" for name in NAMES),
    *(f"12:00:00 INFO connecting with {name}: {PLACE}" for name in NAMES),
    *(f'{{"level": "info", "{name}": "{PLACE}", "after": 1}}' for name in NAMES),
    *(f"got {{'user': 'me', '{name}': '{PLACE}'}} here" for name in NAMES),
    *(f'payload "{{\\"{name}\\": \\"{PLACE}\\"}}" sent' for name in NAMES),
    *(f'deeper {{\\\\\\"{name}\\\\\\": \\\\\\"{PLACE}\\\\\\"}}' for name in NAMES[:6]),
    *(f"--{name} {PLACE}" for name in NAMES),
    *(f"java -D{name}={PLACE} -jar x" for name in NAMES),
    *(f"{name}:\n  {PLACE}" for name in NAMES[:6]),
    *(f"{name}: |\n  {PLACE}\nafter" for name in NAMES[:6]),
    *(f"<{name}>{PLACE}</{name}>" for name in NAMES[:6]),
    *(f"GET /?{name}%3D{PLACE}" for name in NAMES[:6]),
    f"Authorization: Basic {PLACE}",
    f"headers: Basic {PLACE}",
    f"curl -H 'authorization: Bearer {PLACE}'",
    f"sent Bearer {PLACE}",
    f"Server=db;User=me;Password={PLACE};Timeout=5",
    f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={PLACE};EndpointSuffix=core.windows.net",
    f"Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey={PLACE}",
    f"https://a.blob.core.windows.net/c?sv=2022&sig={PLACE}",
    f"jdbc:oracle:thin:@//db?user=me&password={PLACE}",
    f'{{"nested": {{"passwords": ["a", "{PLACE}"]}}, "args": ["--password", "{PLACE}"]}}',
)
SECRETS = st.text(st.sampled_from("abcXYZ0189!#$%^*()_+-=[]{};:,.<>?/|~ "), min_size=6, max_size=30).map(lambda said: f"Zq9{said}9qZ")


def planted(value: Any, secret: Any) -> Any:
    if isinstance(value, dict):
        return {key: planted(each, secret) for key, each in value.items()}
    if isinstance(value, list):
        return [planted(each, secret) for each in value]
    return secret if value == PLACE else value.replace(PLACE, str(secret)) if isinstance(value, str) else value


def assert_gone(secret: str, found: Any) -> None:
    said = found if isinstance(found, str) else json.dumps(found)
    assert secret not in said
    assert json.dumps(secret)[1:-1] not in said


@settings(max_examples=EXAMPLES // 12)
@example("Zq9hun,ter;2 and more9qZ")
@given(SECRETS)
def test_a_secret_at_any_place_of_an_object_is_hidden(secret: str) -> None:
    for template in OBJECTS:
        found = planted(copy.deepcopy(template), secret)
        assert_gone(secret, body(found))
        assert_gone(secret, body({"metadata": {"annotations": {"last": json.dumps({"metadata": {"annotations": {"x": json.dumps(found)}}})}}}))


@settings(max_examples=EXAMPLES // 6)
@given(SECRETS)
def test_a_secret_at_any_place_of_a_text_is_hidden(secret: str) -> None:
    for template in TEXTS:
        said = template.replace(PLACE, secret)
        assert_gone(secret, text(said))
        assert_gone(secret, text(f"before\n{said}\nafter"))
        assert_gone(secret, body({"message": said, "list": [said]}))


@pytest.mark.parametrize("value", [12345678, 1.25, True, None, ["a"], {"value": "hunter2"}, {"a": {"b": [4711]}}])
def test_a_credential_of_any_type_is_hidden(value: Any) -> None:
    assert body({"args": {"password": value}}) == {"args": {"password": "(hidden by sluice report)"}}


WORD = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"), min_size=36, max_size=36)
PREFIXES = ("ghp_", "gho_", "github_pat_", "glpat-", "xoxb-1234-", "xapp-1-", "sk_live_", "rk_test_", "whsec_", "npm_", "hvs.")


@settings(max_examples=EXAMPLES // 6)
@given(WORD)
def test_a_token_of_a_known_form_is_hidden_wherever_it_stands(word: str) -> None:
    forms = [f"{prefix}{word}" for prefix in PREFIXES]
    forms += [f"AKIA{word[:16].upper()}", f"aA0{word}/"[:40], f"eyJ{word}.{word}.{word}", f"{(word * 3)[:86]}=="]
    for token in forms:
        for said in (f"a {token} b", f"'{token}'", f"x={token}", f"https://me:{token}@host/path", json.dumps({"any": [token]}), f"k\n{token}\n"):
            assert_gone(token, text(said))
        assert_gone(token, body({"args": {"any": token, token: 1}, "list": [token], "valueFrom": {"secretKeyRef": {"name": token}}}))


def test_environment_that_explains_what_sluice_does_is_kept() -> None:
    shown = {"SLUICE_LOG_LEVEL": "DEBUG", "AWS_REGION": "eu-west-1", "TZ": "UTC", "SPARK_USER": "spark"}
    found = {"env": [{"name": name, "value": value} for name, value in shown.items()]}
    assert body(found) == found
    hidden = body({"env": [{"name": "SLUICE_LOG_LEVEL", "value": "password=hunter2"}, {"name": "XSLUICE_LOG", "value": "hunter2"}]})
    assert "hunter2" not in str(hidden)


def test_references_of_kubernetes_are_kept_at_their_own_place() -> None:
    """A pod that waits for a Secret cannot be understood without its name."""
    spec = {
        "imagePullSecrets": [{"name": "registry"}],
        "automountServiceAccountToken": False,
        "containers": [
            {
                "env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "orders", "key": "password", "optional": True}}}],
                "envFrom": [{"secretRef": {"name": "orders"}}],
            }
        ],
        "volumes": [
            {"name": "a", "secret": {"secretName": "orders", "defaultMode": 420, "items": [{"key": "password", "path": "db/password"}]}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "orders"}}, {"serviceAccountToken": {"path": "token", "audience": "sts"}}]}},
            {"name": "c", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "orders"}}},
        ],
    }
    assert body({"spec": spec}) == {"spec": spec}
    assert body({"spec": {"driver": {"podTemplate": {"spec": spec}}}}) == {"spec": {"driver": {"podTemplate": {"spec": spec}}}}


@pytest.mark.parametrize("depth", [90, 1_000])
def test_an_object_of_any_depth_is_reported(depth: int) -> None:
    found: Any = {"password": "hunter2", "x": "hunter2"} if depth > 100 else {"password": "hunter2"}
    for _ in range(depth):
        found = {"a": found}
    assert "hunter2" not in json.dumps(body(found))


@pytest.mark.parametrize(
    "said",
    [
        'MountVolume.SetUp failed for volume "x" : secret "orders" not found',
        "Error: couldn't find key password in Secret shop/orders",
        "passed 4 checks; author: me; tokenless; compass=north; bypass is on",
        "shardId-000000000003: record 49590338271490256608559692538361571095921575989136588898/0 failed 5 times",
        "partitionKey=customer-17 monkey=1 keyspace=2",
        '{"level": "info", "msg": "batch 42 committed", "records": 1000}',
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times",
    ],
)
def test_what_support_needs_is_kept(said: str) -> None:
    assert text(said) == said


@pytest.mark.parametrize(
    "part", ["a", "encrypt", "://", "-----BEGIN PRIVATE KEY-----", "x.y-", "eyJaaaaaaaa.", "[", '{"a":', "SG.", "--a ", "\\", "%3D"]
)
@pytest.mark.slow
def test_a_long_line_takes_no_long_time(part: str) -> None:
    """A program may log anything: 200 kB of it within two seconds of CPU."""
    began = time.process_time()
    text(part * (200_000 // len(part)))
    assert time.process_time() - began < 2
