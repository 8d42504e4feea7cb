"""`dev --manifest`: what of a KinesisConsumer runs on one machine, and what is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sluice_checkpoints.errors import Refused
from sluice_consumer.dev import manifest, program
from sluice_consumer.dev.program import CommandLine
from sluice_consumer.dev.session import DevOptions, DevSession

CONSUMER = """
apiVersion: sluice.dev/v1alpha1
kind: KinesisConsumer
metadata: {name: shop-orders}
spec:
  stream: {name: orders, region: eu-west-1, kinesisEndpoint: https://kinesis.example}
  start: {position: LATEST}
  replicas: 2
  pipeline:
    image: registry.example/orders:7
    entrypoint: orders.pipeline:process
    args: {path: s3a://lake/orders, since: 2026-11-24T00:00:00Z}
    env:
      - {name: SHOP, value: berlin}
      - {name: AT, value: $(SHOP)/x}
      - {name: PGPASSWORD, valueFrom: {secretKeyRef: {name: database, key: password}}}
  batch: {intervalSeconds: 60, maxRecordsPerShard: 500}
  onError: {attempts: 2, deadLetter: {sqs: https://sqs.eu-west-1.amazonaws.com/111122223333/letters}}
  sparkConf: {spark.sql.shuffle.partitions: "8", spark.sql.catalog.lake.type: glue}
"""


def given(folder: Path, text: str = CONSUMER, **options: object) -> DevOptions:
    file = folder / "consumer.yaml"
    file.write_text(text)
    return program.options(CommandLine(manifest=file, **options), folder / "letters")  # type: ignore[arg-type]


def test_dev_runs_what_the_manifest_deploys(tmp_path: Path) -> None:
    config = given(tmp_path).config
    assert config["name"] == "shop-orders"
    assert config["stream"] == {"name": "orders", "region": "eu-west-1"}
    assert config["pipeline"] == {"entrypoint": "orders.pipeline:process", "args": {"path": "s3a://lake/orders", "since": "2026-11-24T00:00:00Z"}}
    assert config["batch"] == {"intervalSeconds": 60, "maxRecordsPerShard": 500}
    assert config["sparkConf"] == program.FIRST_COMPILER | {"spark.sql.shuffle.partitions": "8", "spark.sql.catalog.lake.type": "glue"}
    assert config["onError"]["attempts"] == 2


def test_dead_letters_of_a_trial_do_not_reach_the_queue_of_the_manifest(tmp_path: Path) -> None:
    found = given(tmp_path)
    folder = (tmp_path / "letters").as_uri()
    assert found.config["onError"]["deadLetter"] == {"path": folder}
    assert any(folder in note and "spec.onError.deadLetter" in note for note in found.notes)


def test_fields_that_dev_does_not_use_are_named(tmp_path: Path) -> None:
    found = given(tmp_path)
    assert found.notes[0] == (
        "dev does not use spec.start, spec.replicas, spec.stream.kinesisEndpoint, spec.pipeline.image, "
        "spec.pipeline.env.AT, spec.pipeline.env.PGPASSWORD"
    )
    assert found.environment == {"SHOP": "berlin"}


def test_options_of_the_command_line_win(tmp_path: Path) -> None:
    config = given(tmp_path, args=("path=/tmp/orders",), conf=("spark.sql.catalog.lake.type=hadoop",), interval=0.5).config
    assert config["pipeline"]["args"] == {"path": "/tmp/orders", "since": "2026-11-24T00:00:00Z"}  # noqa: S108 - no file
    assert config["sparkConf"] == program.FIRST_COMPILER | {"spark.sql.shuffle.partitions": "8", "spark.sql.catalog.lake.type": "hadoop"}
    assert config["batch"] == {"intervalSeconds": 0.5, "maxRecordsPerShard": 500}


def test_the_one_consumer_of_a_file_with_other_resources_is_found(tmp_path: Path) -> None:
    more = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: code}\n---\n---\n"
    assert given(tmp_path, more + CONSUMER).config["name"] == "shop-orders"


def test_the_one_consumer_of_a_list_is_found(tmp_path: Path) -> None:
    """As `kubectl get -o yaml` prints several."""
    items = "\n".join(f"  {line}" for line in CONSUMER.strip().splitlines())
    text = f"apiVersion: v1\nkind: List\nitems:\n- {items.strip()}\n"
    assert given(tmp_path, text).config["name"] == "shop-orders"


def test_a_proxy_of_the_manifest_does_not_get_what_the_emulator_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records stay on this machine."""
    monkeypatch.setattr(os, "environ", {})
    text = CONSUMER.replace("{name: SHOP, value: berlin}", '{name: http_proxy, value: "http://proxy.example:3128"}')
    options = given(tmp_path, text)
    DevSession(options, Console())._set_environment()
    assert os.environ["http_proxy"] == "http://proxy.example:3128"
    assert {os.environ[name] for name in ("no_proxy", "NO_PROXY")} == {"127.0.0.1,localhost"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "--manifest .*consumer.yaml: not YAML: .*line 1"),
        ("kind: ConfigMap", "holds 0 resources of kind KinesisConsumer"),
        (f"{CONSUMER}---{CONSUMER}", "holds 2 resources of kind KinesisConsumer .* it must hold exactly one"),
        (CONSUMER.replace("spec:", "specs:"), r"^specs: unknown field; did you mean spec\?"),
        (CONSUMER.replace("  pipeline:", "  pipelin:"), r"^spec\.pipelin: unknown field; did you mean pipeline\?"),
        (CONSUMER.replace("  onError:", "  onEror:"), r"^spec\.onEror: unknown field; did you mean onError\?"),
        (CONSUMER.replace("  replicas:", "  labels:"), r"^spec\.labels: unknown field$"),
        (CONSUMER.replace("entrypoint:", "entryPoint:"), r"^spec\.pipeline\.entryPoint: unknown field; did you mean entrypoint\?"),
        (CONSUMER.replace("region:", "regoin:"), r"^spec\.stream\.regoin: unknown field; did you mean region\?"),
        (CONSUMER.replace("  stream: {name: orders, region: eu-west-1, kinesisEndpoint: https://kinesis.example}\n", ""), "spec.stream: missing"),
        (CONSUMER.replace("{name: shop-orders}", "shop-orders"), "metadata: 'shop-orders' is not an object"),
        (CONSUMER.replace("{path: s3a://lake/orders, since: 2026-11-24T00:00:00Z}", "[1]"), "spec.pipeline.args: .1. is not an object"),
        (CONSUMER.replace("  batch: {intervalSeconds: 60, maxRecordsPerShard: 500}", "  batch: 5"), "spec.batch: 5 is not an object"),
        (CONSUMER.replace("    env:", "    env: 1\n    volumes:"), "spec.pipeline.env: must be a list"),
        (CONSUMER.replace("{name: SHOP, value: berlin}", '{name: "A=B", value: x}'), "spec.pipeline.env: .* a name has no `=`"),
        (CONSUMER.replace("{name: SHOP, value: berlin}", "{value: x}"), "spec.pipeline.env: must be a list of objects with name"),
        (CONSUMER.replace("value: berlin", 'value: "a\\0b"'), "spec.pipeline.env: a value holds a zero byte"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused_by_its_field(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        given(tmp_path, text)


@pytest.mark.parametrize("both", [{}, {"entrypoint": "a:b", "manifest": Path("consumer.yaml")}])
def test_an_entrypoint_comes_from_one_place(tmp_path: Path, both: dict[str, object]) -> None:
    """Else a person would not know which code runs."""
    with pytest.raises(Refused, match="give either MODULE:FUNCTION, or --manifest FILE"):
        program.options(CommandLine(**both), tmp_path)  # type: ignore[arg-type]


def test_a_value_that_json_does_not_have_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "consumer.yaml"
    file.write_text(CONSUMER.replace("s3a://lake/orders", "!!binary aGk="))
    with pytest.raises(Refused, match="not JSON serializable"):
        manifest.read(file)


def test_a_refusal_is_one_line_in_its_own_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither folded nor drawn: `:b:` is a picture to rich."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    file = tmp_path / "consumer.yaml"
    file.write_text(CONSUMER.replace("orders.pipeline:process", "nowhere_at_all_in_a_module_of_a_long_name:b"))
    assert program.run(CommandLine(manifest=file)) == 65
    module = "nowhere_at_all_in_a_module_of_a_long_name"
    said = f"pipeline.entrypoint: {module}:b: there is no module {module}; is it in the image, or in the folder where you run this?\n"
    assert capsys.readouterr().out == said
