"""The real Prometheus in the cluster, which scrapes what the chart's PodMonitors select and judges the chart's alerts.

The program is Debian's. A PodMonitor becomes a configuration as the documentation of the Prometheus operator says; that operator itself does not
run here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pod_discovery
from cluster_bench import Bench
from operating import helm
from pod_discovery import META, safe

from sluice_lab import places
from sluice_lab.errors import CommandFailedError
from sluice_lab.machine import cluster as clusters
from sluice_lab.machine import processes, prometheus
from sluice_lab.pictures.answers import Prometheus
from sluice_lab.scenario.installing import OPERATOR_NAMESPACE

Json = dict[str, Any]

NAME, PORT, SECONDS = "prometheus", 9090, 2
PROGRAM, CONFIG, DATA = "/opt/prometheus", "/etc/prometheus", "/data"
KINDS = ("PodMonitor", "PrometheusRule")
IN = f"--namespace={OPERATOR_NAMESPACE}"
RUNBOOKS = "https://example.com/sluice/runbooks.html"
INTERVAL = {"interval": f"{SECONDS}s", "scrapeTimeout": f"{SECONDS}s"}
VALUES: Json = {
    "podMonitor": {"enabled": True, **INTERVAL},
    "driverMetrics": {"port": 9404, "podMonitor": {"enabled": True, **INTERVAL}},
    "prometheusRule": {"enabled": True, "runbookUrl": RUNBOOKS},
}


@dataclass(frozen=True)
class Scraper:
    bench: Bench

    @property
    def prometheus(self) -> Prometheus:
        return Prometheus(self._get)

    def alerts(self) -> dict[str, Json]:
        """Labels and annotations of the alerts that fire, by `name/consumer`, or the name where it is of none."""
        found = [alert for alert in self.prometheus.ask("alerts")["alerts"] if alert["state"] == "firing"]
        return {_of(alert["labels"]): {**alert["labels"], **alert["annotations"]} for alert in found}

    def healthy(self) -> bool:
        targets = self.prometheus.ask("targets", state="active")["activeTargets"]
        return len({each["scrapePool"] for each in targets}) == 2 and all(each["health"] == "up" for each in targets)

    def _get(self, path: str) -> str:
        where = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{NAME}:{PORT}/proxy/api/v1/"
        return self.bench.cluster.kubectl("get", "--raw", where + path)


def _of(labels: Mapping[str, str]) -> str:
    consumer = labels.get("name") or labels.get("sluice_dev_consumer")
    return f"{labels['alertname']}/{consumer}" if consumer else labels["alertname"]


@contextmanager
def scraping(bench: Bench) -> Iterator[Scraper]:
    host = clusters.host_address(bench.cluster).listen
    crds = [crd for crd in prometheus.operator_crds() if crd["spec"]["names"]["kind"] in KINDS]  # type: ignore[index]  # JSON
    assert len(crds) == len(KINDS)
    names = [f"crd/{crd['metadata']['name']}" for crd in crds]  # type: ignore[index]  # JSON
    for crd in crds:
        _create(bench, crd)
    helm(bench, **VALUES)
    try:
        with pod_discovery.serving(bench, host) as discovery:
            yield _started(bench, discovery)
    finally:
        bench.cluster.kubectl(IN, "delete", f"pod/{NAME}", f"configmap/{NAME}", "--ignore-not-found", "--grace-period=1")
        helm(bench)
        bench.cluster.kubectl("delete", *names)


def _started(bench: Bench, discovery: str) -> Scraper:
    program = prometheus.program("prometheus")
    processes.run("docker", "cp", program, f"{bench.cluster.node}:{PROGRAM}")
    bench.apply_in(OPERATOR_NAMESPACE, _config(bench, discovery), _pod(_image(bench)))
    try:
        bench.cluster.kubectl(IN, "wait", "--for=condition=Ready", f"pod/{NAME}", "--timeout=60s")
    except CommandFailedError as error:
        raise AssertionError(bench.cluster.kubectl(IN, "logs", NAME)) from error
    return Scraper(bench)


def _create(bench: Bench, crd: Any) -> None:
    """Server-side: a CRD is larger than the annotation of `kubectl apply` may be."""
    path = places.made(bench.cluster.work / "tests") / "crd.json"
    path.write_text(json.dumps(crd))
    bench.cluster.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={path}")
    clusters.established(bench.cluster.kubectl, f"crd/{crd['metadata']['name']}")


def _image(bench: Bench) -> str:
    """The operator's: the program needs nothing but a C library."""
    words = "--output=jsonpath={.items[0].spec.template.spec.containers[0].image}"
    return bench.cluster.kubectl(IN, "get", "deployments", "--selector=app.kubernetes.io/name=sluice", words)


def _config(bench: Bench, discovery: str) -> Json:
    def found(kind: str) -> list[Json]:
        items: list[Json] = json.loads(bench.cluster.kubectl(IN, "get", kind, "--output=json"))["items"]
        return items

    config = {
        "global": {"evaluation_interval": f"{SECONDS}s"},
        "rule_files": [f"{CONFIG}/rules.json"],
        "scrape_configs": [scrape_config(monitor, discovery) for monitor in found("podmonitors")],
    }
    rules = {"groups": [group for rule in found("prometheusrules") for group in rule["spec"]["groups"]]}
    data = {"config.json": json.dumps(config), "rules.json": json.dumps(rules)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}


def scrape_config(monitor: Json, discovery: str) -> Json:
    """Of a PodMonitor with one endpoint: https://prometheus-operator.dev/docs/api-reference/api/ says what its fields mean."""
    metadata, spec = monitor["metadata"], monitor["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    where = spec.get("namespaceSelector", {})
    namespaces = ".+" if where.get("any") else "|".join(where.get("matchNames", [metadata["namespace"]]))
    kept = [_rule(f"pod_label_{safe(key)}", action="keep", regex=re.escape(value)) for key, value in spec["selector"]["matchLabels"].items()]
    named = {"namespace": "namespace", "pod": "pod_name", "container": "pod_container_name"}
    return {
        "job_name": f"podMonitor/{metadata['namespace']}/{metadata['name']}/0",
        "honor_labels": endpoint.get("honorLabels", False),
        "metrics_path": endpoint["path"],
        "scrape_interval": endpoint["interval"],
        "scrape_timeout": endpoint["scrapeTimeout"],
        "http_sd_configs": [{"url": discovery, "refresh_interval": f"{SECONDS}s"}],
        "relabel_configs": [
            _rule("namespace", action="keep", regex=namespaces),
            _rule("pod_phase", action="drop", regex="(Failed|Succeeded)"),
            *kept,
            _rule("pod_container_port_name", action="keep", regex=endpoint["port"]),
            *(_rule(source, target_label=label) for label, source in named.items()),
            *(_rule(f"pod_label_{safe(key)}", target_label=safe(key)) for key in spec.get("podTargetLabels", ())),
        ],
    }


def _rule(source: str, **more: str) -> Json:
    return {"source_labels": [f"{META}{source}"], **more}


def _pod(image: str) -> Json:
    program = [PROGRAM, f"--config.file={CONFIG}/config.json", f"--storage.tsdb.path={DATA}", f"--web.listen-address=:{PORT}"]
    mounts = {"program": PROGRAM, "config": CONFIG, "data": DATA}
    container = {
        "name": NAME,
        "image": image,
        "command": program,
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": PORT}, "periodSeconds": 1},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
    }
    volumes = [
        {"name": "program", "hostPath": {"path": PROGRAM, "type": "File"}},
        {"name": "config", "configMap": {"name": NAME}},
        {"name": "data", "emptyDir": {}},
    ]
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME}, "spec": spec}
