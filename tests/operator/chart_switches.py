"""One set of values for every value of the chart, each other than its default; and what not every Kubernetes has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

PEER: Json = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
RELABELING: Json = {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
MONITOR: Json = {
    "enabled": True,
    "interval": "15s",
    "scrapeTimeout": "10s",
    "labels": {"release": "prometheus"},
    "annotations": {"a": "b"},
    "relabelings": [RELABELING],
    "metricRelabelings": [{"regex": "sluice_reconcile_.*", "sourceLabels": ["__name__"], "action": "drop"}],
}
SIDECAR: Json = {"name": "proxy", "image": "proxy:1", "resources": {"limits": {"memory": "32Mi"}}}
CONFIG: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}, "data": {"a": "b"}}
SPREAD: Json = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
RULES: Json = {"name": "mine", "rules": [{"alert": "Mine", "expr": "sluice_leader == 0"}]}

SWITCHES: dict[str, Json] = {
    "defaults": {},
    "global": {"global": {"imageRegistry": "registry.example/team", "imagePullSecrets": [{"name": "global"}]}, "watchNamespaces": ["a"]},
    "names": {"nameOverride": "stream", "fullnameOverride": "stream-operator"},
    "common": {"commonLabels": {"team": "data"}, "commonAnnotations": {"owner": "data"}, "watchNamespaces": ["a"]},
    "image": {"image": {"repository": "localhost:5000/o", "tag": "v2", "pullPolicy": "Always"}, "imagePullSecrets": [{"name": "mine"}]},
    "digest": {"image": {"digest": f"sha256:{'0' * 64}"}},
    "one replica": {"replicas": 1},
    "watched": {"watchNamespaces": ["a", "b"], "class": "blue", "clusterName": "prod-eu", "rbac": {"clusterWide": False, "aggregate": False}},
    "no rights": {"rbac": {"create": False}, "watchNamespaces": ["a"]},
    "consumers": {
        "consumer": {
            "image": "mine:1",
            "namespaces": ["a"],
            "serviceAccount": {"annotations": {"role": "x"}},
            "executorServiceAccount": {"name": "executors", "annotations": {"role": "y"}},
            "imagePullSecrets": [{"name": "pipelines"}],
        }
    },
    "no accounts": {
        "watchNamespaces": ["a"],
        "consumer": {"serviceAccount": {"create": False}},
        "serviceAccount": {"create": False, "name": "there"},
    },
    "account": {"serviceAccount": {"name": "me", "annotations": {"a": "b"}}},
    "policy": {"policy": {"privilegedPods": True, "serviceAccounts": ["orders"]}, "admissionPolicy": {"enabled": True}},
    "crd": {"crds": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "keep": False}},
    "no crd": {"crds": {"install": False}},
    "logs": {"logFormat": "plain"},
    "pods": {
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        "podAnnotations": {"a": "b"},
        "podLabels": {"c": "d"},
        "podSecurityContext": {"runAsUser": 1001, "fsGroup": 1001},
        "securityContext": {"runAsGroup": 1001},
        "hostUsers": False,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 60,
    },
    "nodes": {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "topologySpreadConstraints": [SPREAD, {**SPREAD, "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}],
    },
    "updates": {"revisionHistoryLimit": 3, "updateStrategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 1}}},
    "recreate": {"updateStrategy": {"type": "Recreate"}},
    "probes": {
        "livenessProbe": {"periodSeconds": 30, "failureThreshold": 5},
        "readinessProbe": {"initialDelaySeconds": 1, "successThreshold": 2},
        "startupProbe": {"periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 60},
    },
    "budget": {"podDisruptionBudget": {"maxUnavailable": "50%", "unhealthyPodEvictionPolicy": ""}},
    "minimum": {"podDisruptionBudget": {"minAvailable": 1, "unhealthyPodEvictionPolicy": "IfHealthyBudget"}},
    "no budget": {"podDisruptionBudget": {"enabled": False}},
    "lease": {"lease": {"install": True}},
    "argocd": {"argocd": {"customizations": True}},
    "network": {
        "watchNamespaces": ["a"],
        "driverMetrics": {"port": 9404},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [PEER],
            "apiServerPorts": [6443],
            "consumers": {
                "ingress": True,
                "egress": True,
                "ports": [443, 5432],
                "except": ["10.96.0.1/32", "fd00::1/128"],
                "rules": [{"to": [PEER]}],
            },
        },
    },
    "pod monitors": {"podMonitor": MONITOR, "driverMetrics": {"port": 9404, "podMonitor": MONITOR}},
    "service monitor": {"serviceMonitor": MONITOR},
    "alerts": {
        "driverMetrics": {"port": 9404},
        "prometheusRule": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "annotations": {"a": "b"},
            "runbookUrl": "https://example.com/sluice/runbooks.html",
            "lagSeconds": 60,
            "alertLabels": {"team": "data"},
            "disabled": ["SluiceConsumerNotReady"],
            "groups": [RULES],
        },
    },
    "dashboards": {
        "driverMetrics": {"port": 9404},
        "grafanaDashboards": {"enabled": True, "labels": {"dashboards": "yes"}, "annotations": {"a": "b"}, "folder": "Streams"},
    },
    "extra": {
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
        "extraInitContainers": [{**SIDECAR, "name": "before"}],
        "extraContainers": [SIDECAR],
        "extraObjects": [CONFIG, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-text'}\n"],
    },
}
SINCE = {"policy": "1.30"}  # ValidatingAdmissionPolicy


def leaves(values: Json, path: str = "") -> Iterator[str]:
    for key, value in values.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and value:
            yield from leaves(value, here)
        else:
            yield here
