"""An executor's pod as Spark's own builder makes it of what the operator wrote. No cluster: the builder reads settings and the template's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sluice_consumer import config as configs
from sluice_consumer.spark import conf as spark_conf
from sluice_operator.apply import manifests
from sluice_operator.resource.changes import DesiredSpec
from sluice_operator.resource.fields import parse
from sluice_operator.settings import Settings
from sluice_operator.state.objects import Resource
from sluice_operator.state.status import DriverStatus

Json = dict[str, Any]

SPEC: Json = {"stream": {"name": "orders", "region": "eu-west-1"}, "replicas": 2, "pipeline": {"entrypoint": "orders.pipeline:process"}}
RESOURCE = Resource(namespace="team-a", name="orders", uid="u-1", version="7", generation=3)
DRIVER = DriverStatus(attempt=3, pod="orders-driver-3", spec_hash="abc")
HERE = spark_conf.PodAddress("orders-driver-3", "team-a", "10.0.0.7", "u-driver")
TEMPLATE_FILE = "spark.kubernetes.executor.podTemplateFile"


class Renderer:
    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._jvm: Any = spark._jvm
        self._folder = folder

    def pod(self, settings: Settings | None = None, **change: Any) -> Json:
        """The pod of executor 1, for a spec with changes: settings and template travel through the driver's pod, as they do in a cluster."""
        raw = {**SPEC, **change}
        made = manifests.driver_pod(RESOURCE, DesiredSpec(parse(raw), raw), DRIVER, settings or Settings())
        notes = made["metadata"]["annotations"]
        template = self._folder / "executor.yaml"
        template.write_text(notes["sluice.dev/executor-template"])
        told = spark_conf.settings(configs.parse(notes["sluice.dev/config"]), HERE)
        return self._built(told | {TEMPLATE_FILE: str(template)})

    def _built(self, told: dict[str, str]) -> Json:
        jvm, k8s = self._jvm, self._jvm.org.apache.spark.deploy.k8s
        conf = jvm.org.apache.spark.SparkConf(False)  # noqa: FBT003 - py4j has no keyword arguments
        for key, value in told.items():
            conf.set(key, value)
        profiles = getattr(getattr(jvm.org.apache.spark.resource, "ResourceProfile$"), "MODULE$")
        client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
        try:
            guard = self._guard(conf)
            owner = jvm.scala.Option.apply(self._driver())
            executor = k8s.KubernetesConf.createExecutorConf(conf, "1", told["spark.app.id"], owner, 0)
            profiles.clearDefaultProfile()
            profile = profiles.getOrCreateDefaultProfile(conf)
            spec = jvm.org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBuilder().buildFromFeatures(executor, guard, client, profile)
            return self._whole(spec)
        finally:
            client.close()
            profiles.clearDefaultProfile()

    def _guard(self, conf: Any) -> Any:
        manager = self._jvm.org.apache.spark.SecurityManager
        guard = manager(conf, self._jvm.scala.Option.empty(), getattr(manager, "$lessinit$greater$default$3")())
        guard.initializeAuth()
        return guard

    def _whole(self, spec: Any) -> Json:
        written = self._jvm.io.fabric8.kubernetes.client.utils.Serialization
        pod: Json = json.loads(written.asJson(spec.pod().pod()))
        container: Json = json.loads(written.asJson(spec.pod().container()))
        pod["spec"].setdefault("containers", []).append(container)
        others = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(spec.executorKubernetesResources())
        return pod | {"others": [json.loads(written.asJson(each)) for each in others]}

    def _driver(self) -> Any:
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": HERE.name, "namespace": HERE.namespace, "uid": HERE.uid}}
        read = self._jvm.io.fabric8.kubernetes.client.utils.Serialization
        return read.unmarshal(json.dumps(made), self._jvm.java.lang.Class.forName("io.fabric8.kubernetes.api.model.Pod"))
