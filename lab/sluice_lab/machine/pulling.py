"""Lets a cluster's nodes pull images from a registry of this machine that has no TLS, as they pull from any other that has."""

from __future__ import annotations

from sluice_lab.errors import LabError
from sluice_lab.machine import processes
from sluice_lab.machine.cluster import KindCluster, healthy, nodes
from sluice_lab.machine.processes import run

START_SECONDS = 60.0
# containerd looks into this folder whenever it pulls, if its configuration says so; kind's published nodes are made that way.
_TOLD = """
if ! grep -q config_path /etc/containerd/config.toml; then
  printf '\\n[plugins."io.containerd.grpc.v1.cri".registry]\\n  config_path = "/etc/containerd/certs.d"\\n' >>/etc/containerd/config.toml
  systemctl restart containerd
fi
mkdir -p "/etc/containerd/certs.d/$1"
printf 'server = "http://%s"\\n[host."http://%s"]\\n  capabilities = ["pull", "resolve"]\\n' "$1" "$1" >"/etc/containerd/certs.d/$1/hosts.toml"
"""


def over_http(cluster: KindCluster, address: str) -> None:
    """Configure all nodes for a registry at an address (`172.18.0.1:5000`) that speaks plain HTTP.

    The first time containerd restarts; pods keep running.

    Raises:
        LabError: the cluster does not answer afterwards.
    """
    for node in nodes(cluster):
        run("docker", "exec", node, "bash", "-euc", _TOLD, "over-http", address)
    if not processes.poll(lambda: healthy(cluster), START_SECONDS, pause=1):
        raise LabError(f"cluster {cluster.name} does not answer since its containerd was told of the registry {address}")
