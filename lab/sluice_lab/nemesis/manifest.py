"""The manifests: a ConfigMap with the pipeline's code, and the consumer into which faults are injected. Pure."""

from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from sluice_lab.scenario import environment

STREAM = "nemesis"
NAME = "nemesis"
MODULE = "nemesis_sink"
LEASE_SECONDS = 10
STANDS_BY = {"strategy": "Standby", "standby": "Always", "readySeconds": 120}
SOON_NO_SERIES = {"resetAfterSeconds": 30}  # of work: by default, a driver that follows two killed ones gets no standby for ten minutes
HOME = "/data"  # of the sinks, in pods
LETTERS = "letters"  # the folder of the dead letters in it
APP = "/opt/sluice/app"  # where the image looks for the user's code


@dataclass(frozen=True, slots=True)
class Addresses:
    """The endpoints that pods connect to, and the folder of the node that holds the sinks.

    Attributes:
        args: of the pipeline, beside `home`: which sink of the lake is tried.
        spark_conf: of that sink.
        poison: whether records come on which the pipeline raises.
    """

    kinesis: str
    dynamodb: str
    sink: str
    args: dict[str, Any] = field(default_factory=dict)
    spark_conf: dict[str, str] = field(default_factory=dict)
    poison: bool = False


def pipeline() -> dict[str, Any]:
    """The ConfigMap with the pipeline's code."""
    code = files(__package__).joinpath("sink.py").read_text()
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {f"{MODULE}.py": code}}


def consumer(addresses: Addresses) -> dict[str, Any]:
    """The KinesisConsumer. It has one executor. Its restart back-off is short, because the nemesis restarts drivers often."""
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "KinesisConsumer",
        "metadata": {"name": NAME},
        "spec": {
            "stream": {
                "name": STREAM,
                "region": environment.REGION,
                "kinesisEndpoint": addresses.kinesis,
                "dynamodbEndpoint": addresses.dynamodb,
            },
            "start": {"position": "TRIM_HORIZON"},
            "replicas": 1,
            "pipeline": {"entrypoint": f"{MODULE}:process", "args": {"home": HOME, "poison": addresses.poison} | addresses.args},
            **({"onError": {"attempts": 2, "deadLetter": {"path": f"file://{HOME}/{LETTERS}"}}} if addresses.poison else {}),
            "batch": {"intervalSeconds": 1},
            "leaseDurationSeconds": LEASE_SECONDS,
            "drainTimeoutSeconds": 30,
            "restart": {"backoffSeconds": 1, "maxBackoffSeconds": 4},
            "driver": _role("driver", "1536Mi" if addresses.args else "1Gi", addresses),
            "executor": _role("executor", "1Gi", addresses),
            "sparkConf": {"spark.driver.memory": "768m" if addresses.args else "512m"} | addresses.spark_conf,
        },
    }


def _role(name: str, memory: str, addresses: Addresses) -> dict[str, Any]:
    credentials = [{"name": key, "value": value} for key, value in environment.CREDENTIALS.items()]
    mounts = [{"name": "sink", "mountPath": HOME}, {"name": "app", "mountPath": APP}]
    volumes = [{"name": "sink", "hostPath": {"path": addresses.sink, "type": "Directory"}}, {"name": "app", "configMap": {"name": NAME}}]
    template = {"spec": {"containers": [{"name": name, "env": credentials, "volumeMounts": mounts}], "volumes": volumes}}
    return {"resources": {"requests": {"cpu": "50m", "memory": memory}}, "podTemplate": template}
