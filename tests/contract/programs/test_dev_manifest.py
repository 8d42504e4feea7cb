"""`sluice dev --manifest` and the operator read the same manifest: what runs on one machine is what a driver gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_consumer.dev import manifest
from sluice_lab import places
from sluice_lab.examples.manifest import configuration
from sluice_lab.generate import crd

EXAMPLES = sorted(path for path in places.REPO.glob("examples/*/*.yaml") if "kind: KinesisConsumer" in path.read_text())
OF_A_CLUSTER = ("spark.master", "spark.app.id", "spark.authenticate", "spark.kubernetes.", "spark.driver.", "spark.executor.")


def of_operator(path: Path) -> dict[str, object]:
    found = configuration(path, {})
    return {**found, "sparkConf": {key: value for key, value in found["sparkConf"].items() if not key.startswith(OF_A_CLUSTER)}}


WHOLE = """
apiVersion: sluice.dev/v1alpha1
kind: KinesisConsumer
metadata: {name: orders, namespace: shop}
spec:
  stream: {name: orders, region: eu-west-1, probeShare: 0.5}
  pipeline: {entrypoint: "orders:process", args: {path: /data, deep: {m: [1, 2.5, null, true]}}}
  batch: {intervalSeconds: 7, maxRecordsPerShard: 500, maxBytesPerShard: 2097152, shardsPerTask: 4, maxSeconds: 60}
  onError: {attempts: 2, maxExcludedPerHour: 5, deadLetter: {path: "s3a://lake/letters"}}
  drainTimeoutSeconds: 30
  sparkConf: {spark.sql.shuffle.partitions: "8"}
"""


OF_ANOTHER_ACCOUNT = """
    arn: arn:aws:kinesis:eu-west-1:444455556666:stream/orders
    roleArn: arn:aws:iam::444455556666:role/orders-reader
    externalId: shop
    sessionName: them
"""


def test_there_are_examples() -> None:
    """Else nothing is compared."""
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_dev_takes_what_the_operator_gives_to_a_driver(path: Path) -> None:
    compare(path)


def test_dev_takes_every_field_that_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "consumer.yaml"
    path.write_text(WHOLE)
    assert manifest.read(path).unused == ()
    assert manifest.read(path).config.keys() == {"name", "stream", "pipeline", *manifest.AS_IT_STANDS}
    compare(path)


@pytest.mark.parametrize("where", manifest.USED)
def test_dev_knows_the_fields_of_the_crd(where: str) -> None:
    fields = crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for part in filter(None, where.split(".")):
        fields = fields["properties"][part]
    assert manifest.USED[where] | manifest.UNUSED[where] == fields["properties"].keys() | ({"apiVersion", "kind", "metadata"} if not where else set())


def test_dev_keeps_the_arn_of_a_stream_and_assumes_no_role(tmp_path: Path) -> None:
    """The emulators are in the stream's account; what the real account allows is not known to them."""
    path = tmp_path / "consumer.yaml"
    path.write_text(WHOLE.replace("{name: orders, region: eu-west-1, probeShare: 0.5}", OF_ANOTHER_ACCOUNT))
    found = manifest.read(path)
    assert found.unused == ("spec.stream.roleArn", "spec.stream.externalId", "spec.stream.sessionName")
    assert found.config["stream"] == {"arn": "arn:aws:kinesis:eu-west-1:444455556666:stream/orders"}
    compare(path)


def compare(path: Path) -> None:
    ours, theirs = manifest.read(path).config, of_operator(path)
    assert ours["name"] == theirs["name"]
    assert ours["pipeline"] == {key: value for key, value in theirs["pipeline"].items() if key in ours["pipeline"]}  # type: ignore[attr-defined]
    assert ours.get("sparkConf", {}) == theirs["sparkConf"]
    for part in ("stream", "batch", "onError"):
        given, made = ours.get(part) or {}, theirs.get(part) or {}
        assert given == {key: made[key] for key in given}, part  # type: ignore[index]
    assert ours.get("drainTimeoutSeconds", theirs["drainTimeoutSeconds"]) == theirs["drainTimeoutSeconds"]
