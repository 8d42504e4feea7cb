"""What a report hides, and what it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from sluice_kubectl.views.credentials import HIDDEN
from sluice_kubectl.views.secrets import body, text

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("said", "secret"),
    [
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
        ("using AKIAIOSFODNN7EXAMPLE now", "AKIAIOSFODNN7EXAMPLE"),
        ("jdbc:postgresql://sluice:hunter2@db:5432/orders", "hunter2"),
        ("GET https://bucket.s3.amazonaws.com/k?X-Amz-Security-Token=IQoJb3&X-Amz-Signature=abc123", "IQoJb3"),
        ("GET https://bucket.s3.amazonaws.com/k?X-Amz-Security-Token=IQoJb3&X-Amz-Signature=abc123", "abc123"),
        (f"Authorization: Bearer {JWT}", JWT),
        (f"token was {JWT}", JWT),
        ("curl -H 'authorization: Bearer abcdefghij0123456789'", "abcdefghij0123456789"),
        ('{"password": "hunter 2", "user": "me"}', "hunter 2"),
        ("spark.hadoop.fs.s3a.secret.key=hunter2", "hunter2"),
        ("spark.hadoop.fs.s3a.session.token hidden? password='hunter2'", "hunter2"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\nafter", "MIIEow"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEow", "MIIEow"),
    ],
)
def test_text_loses_what_looks_like_a_credential(said: str, secret: str) -> None:
    hidden = text(said)
    assert secret not in hidden
    assert HIDDEN in hidden


@pytest.mark.parametrize(
    "said",
    [
        "batch 42 committed: 1000 records of shardId-000000000003 up to 49590338271490256608559692538361571095921575989136588898",
        "ProvisionedThroughputExceededException of GetRecords; waits 1.2 s",
        "https://kinesis.eu-west-1.amazonaws.com is not reachable",
        "planned 4 ranges; generation 17",
    ],
)
def test_text_keeps_what_support_needs(said: str) -> None:
    assert text(said) == said


@pytest.mark.parametrize(
    "found",
    [
        {"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]},
        {"env": [{"name": "API_TOKEN", "value": "hunter2"}]},
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"env":[{"name":"DB_PASSWORD","value":"hunter2"}]}\n'}},
        {"annotations": {"sluice.dev/executor-template": '{"env": [{"value": "hunter2", "name": "DB_PASSWORD"}]}'}},
        {"sparkConf": {"spark.hadoop.fs.s3a.secret.key": "hunter2"}},
        {"args": {"password": "hunter2"}},
        {"args": {"accessKey": "hunter2"}},
        {"args": {"tokens": ["hunter2"]}},
        {"args": {"url": "https://me:hunter2@example"}},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"env":[{"name":"x","password":"hunter2"}]}'}}},
    ],
)
def test_an_object_loses_values_of_credentials(found: Any) -> None:
    assert "hunter2" not in str(body(found))


def test_an_object_keeps_names_of_secrets() -> None:
    """A pod that waits for a Secret cannot be understood without its name."""
    found = {
        "env": [{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "orders", "key": "password"}}}],
        "imagePullSecrets": [{"name": "registry"}],
    }
    assert body(found) == found
