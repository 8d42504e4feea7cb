"""docs/start/eks.md, followed on the lab's cluster: its commands, values and manifest as they stand, from the install to the way back.

What differs from EKS: the registry has no TLS, the consumer asks emulators, and no IAM gives it credentials (`local`). The fixture `published` makes
the release of the page's first section. The page's calls of `aws` are those of tests/lab/site/test_start_aws.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import page_blocks
import pytest
import yaml
from cluster_bench import Bench
from operating import is_led
from published import VERSION, Published
from without_sluice import items, without_sluice

from sluice_lab.machine import tools
from sluice_lab.machine.processes import run
from sluice_lab.scenario import environment
from sluice_lab.scenario.topology import Stream

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PAGE, RUNBOOKS = "docs/start/eks.md", "docs/runbooks.md"
HERE = "default"  # the page's namespace
RECORD = b"a first record"


@dataclass(frozen=True)
class Reader:
    bench: Bench
    published: Published
    folder: Path

    def types(self, block: str, more: str = "") -> str:
        """The block of the page that begins so, with the reader's own registry, and more options for Helm; returns what it printed."""
        text = page_blocks.beginning(PAGE, block).replace("registry.example", self.published.registry.name).replace("0.1.0", VERSION)
        return self.bash(re.sub(r"(?m)^helm install .*\\$", lambda line: f"{line[0][:-1]} --plain-http {more} \\", text))

    def bash(self, text: str) -> str:
        programs = f"{Path(tools.helm()).parent}{os.pathsep}{tools.path(self.bench.cluster.work)}"
        return run("bash", "-euc", text, cwd=self.folder, env={"KUBECONFIG": str(self.bench.cluster.kubeconfig), "PATH": programs}, seconds=480)

    def saves(self, name: str, document: object) -> None:
        (self.folder / name).write_text(yaml.safe_dump(document))


@pytest.fixture(scope="module")
def reader(bench: Bench, published: Published, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("start")
    for program in (tools.kubectl(bench.cluster.work, bench.cluster.node), tools.helm()):
        assert os.access(program, os.X_OK)
    with Stream(bench.aws.kinesis, "orders").existing(1), without_sluice(bench):
        yield Reader(bench, published, folder)


def credentials() -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in environment.CREDENTIALS.items()]


def local(manifest: dict[str, Any], bench: Bench) -> dict[str, Any]:
    spec = manifest["spec"]
    spec["stream"] |= {"kinesisEndpoint": bench.aws.kinesis_endpoint, "dynamodbEndpoint": bench.aws.dynamodb_endpoint}
    spec["pipeline"] |= {"env": credentials()}
    return manifest


def test_the_operator_is_installed_and_tested_by_two_commands(reader: Reader) -> None:
    values = yaml.safe_load(page_blocks.beginning(PAGE, "consumer:\n"))
    reader.saves("values.yaml", values)
    said = reader.types("helm install", more="--values values.yaml")
    assert re.search(r"(?m)^STATUS: deployed$", said)
    assert re.search(r"(?m)^Phase: +Succeeded$", said)
    assert is_led(reader.bench)
    accounts = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in items(reader.bench, HERE, "serviceaccounts")}
    chosen = values["consumer"]
    assert accounts["sluice-consumer"].items() >= chosen["serviceAccount"]["annotations"].items()
    assert accounts["sluice-executor"].items() >= chosen["executorServiceAccount"]["annotations"].items()


def test_the_consumer_gets_ready_within_the_time_of_the_page_and_prints_rows(reader: Reader) -> None:
    reader.bench.aws.kinesis.put_record(StreamName="orders", Data=RECORD, PartitionKey="a")
    reader.saves("consumer.yaml", local(yaml.safe_load(page_blocks.beginning(PAGE, "apiVersion:")), reader.bench))
    said = reader.types("kubectl apply")
    assert "kinesisconsumer.sluice.dev/orders created" in said
    assert "kinesisconsumer.sluice.dev/orders condition met" in said
    assert re.search(r"(?m)^ +Phase: +Running$", said)
    pods = {each["metadata"]["labels"]["sluice.dev/role"]: each["spec"] for each in items(reader.bench, HERE, "pods")}
    assert {role: spec["serviceAccountName"] for role, spec in pods.items()} == {"driver": "sluice-consumer", "executor": "sluice-executor"}
    assert {each["image"] for spec in pods.values() for each in spec["containers"]} == {f"{reader.published.registry.name}/sluice-consumer:{VERSION}"}
    log = (f"--namespace={HERE}", "logs", "--selector=sluice.dev/role=driver", "--tail=-1")
    reader.bench.until("the record in the driver's log", lambda: RECORD.decode() in reader.bench.cluster.kubectl(*log))


def test_a_drivers_configuration_can_be_had_for_a_check(reader: Reader) -> None:
    """docs/runbooks.md, "The check": its two commands and its Job, with the name of the driver and the image that are here."""
    driver = next(each["metadata"]["name"] for each in items(reader.bench, HERE, "pods") if each["metadata"]["labels"]["sluice.dev/role"] == "driver")
    reader.bash(page_blocks.beginning(RUNBOOKS, "kubectl get pod orders-driver-7").replace("orders-driver-7", driver))
    job = yaml.safe_load(page_blocks.beginning(RUNBOOKS, "apiVersion: batch/v1"))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container |= {"image": f"{reader.published.registry.name}/sluice-consumer:{VERSION}", "env": [*container["env"], *credentials()]}
    reader.saves("job.yaml", job)
    said = reader.bash(
        "kubectl apply -f job.yaml && kubectl wait --for=condition=Complete job/orders-check --timeout=3m && kubectl logs job/orders-check"
    )
    assert "entrypoint" in said
    reader.bash("kubectl delete job/orders-check configmap/orders-check")


def test_all_of_it_goes_but_the_table_and_the_crd(reader: Reader) -> None:
    said = reader.types("kubectl delete")
    assert 'kinesisconsumer.sluice.dev "orders" deleted' in said
    assert 'release "sluice" uninstalled' in said
    reader.bench.until("no pod of the consumer", lambda: not items(reader.bench, HERE, "pods"))
    assert "sluice_default_orders" in reader.bench.aws.dynamodb.list_tables()["TableNames"]
    assert "kinesisconsumers" in reader.bench.cluster.kubectl("get", "crds", "--output=name")
