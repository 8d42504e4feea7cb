"""An API server and its etcd as plain processes on loopback: no Docker, no nodes, no controllers, no other load.

Tests and benches use it if they need thousands of objects on which only they act. Pods stay as they are written, garbage is not collected, and a pod
without a node is deleted at once.
"""

import base64
import http
import json
import shutil
import ssl
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import node_image, processes
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.machine.processes import Program, Running, run
from sluice_lab.steps import step

START_SECONDS = 90.0
_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived", "ResponseStarted"]}
_WRITES = [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}, {"level": "None"}]
_EVERYTHING = [{"level": "Metadata"}]


@dataclass(frozen=True)
class LocalApiServer:
    """An API server at `url`. Every user is an administrator; a user's name is also its token. `audit` logs the calls."""

    url: str
    home: Path
    audit: Path
    pids: tuple[int, ...]

    @property
    def authority(self) -> Path:
        """The certificate to trust."""
        return self.home / "apiserver.crt"

    def kubeconfig(self, user: str) -> Path:
        """A kubeconfig for a user, who must be one of those the server was started with."""
        trusted = base64.b64encode(self.authority.read_bytes()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bare", "cluster": {"server": self.url, "certificate-authority-data": trusted}}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": "bare", "context": {"cluster": "bare", "user": user}}],
            "current-context": "bare",
        }
        path = self.home / f"{user}.kubeconfig"
        path.write_text(json.dumps(document))  # JSON is YAML
        return path


@contextmanager
def running(work: Path, users: tuple[str, ...], *, reads: bool = False, accounts: bool = False) -> Iterator[LocalApiServer]:
    """Run an empty server while the block lasts; its data is removed afterwards.

    With `reads` the audit logs reads too. With `accounts` a pod needs its service account, as in every cluster; here no controller makes one.
    """
    programs = _programs(work)
    home = Path(tempfile.mkdtemp(prefix="apiserver-", dir=places.made(work / "apiserver")))
    (home / "policy.json").write_text(json.dumps({**_POLICY, "rules": _EVERYTHING if reads else _WRITES}))
    started: list[Running] = []
    try:
        with step("etcd and kube-apiserver"):
            store = f"http://{LOOPBACK}:{free_port(LOOPBACK)}"
            started.append(processes.start(work, _etcd(programs, home, store)))
            url = f"https://{LOOPBACK}:{free_port(LOOPBACK)}"
            started.append(processes.start(work, _apiserver(programs, home, store, url, users, accounts)))
            server = LocalApiServer(url, home, home / "audit.log", tuple(program.pid for program in started))
            _await(server, users[0], started)
        yield server
    finally:
        for program in reversed(started):
            program.stop()
        shutil.rmtree(home, ignore_errors=True)


def kubectl(work: Path) -> Path:
    """The kubectl of the server's version."""
    return _programs(work) / "kubectl"


def _programs(work: Path) -> Path:
    """A folder with links to hyperkube, named as its programs."""
    hyperkube, folder = node_image.programs(), places.made(work / "apiserver" / "bin")
    with places.lock(work / "apiserver" / "bin.lock"):  # tests in other processes start servers too
        for link in (folder / "etcd", folder / "kube-apiserver", folder / "kubectl"):
            if not (link.is_symlink() and link.readlink() == hyperkube):
                link.unlink(missing_ok=True)
                link.symlink_to(hyperkube)
    return folder


def _etcd(programs: Path, home: Path, url: str) -> Program:
    """Etcd without fsync: it need not survive a crash, and measurements then exclude this machine's disk."""
    peers = f"http://{LOOPBACK}:{free_port(LOOPBACK)}"
    options = {
        "data-dir": str(home / "etcd"),
        "listen-client-urls": url,
        "advertise-client-urls": url,
        "listen-peer-urls": peers,
        "initial-advertise-peer-urls": peers,
        "initial-cluster": f"default={peers}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    return Program(f"etcd-{url.rpartition(':')[2]}", (str(programs / "etcd"), *_flags(options)))


def _apiserver(programs: Path, home: Path, store: str, url: str, users: tuple[str, ...], accounts: bool) -> Program:  # noqa: FBT001 - ours
    """kube-apiserver with a real one's defaults, except for service accounts' tokens, which need a controller."""
    key, tokens = home / "accounts.key", home / "tokens.csv"
    run("openssl", "genrsa", "-out", str(key), "2048")
    tokens.write_text("".join(f'{user},{user},{user},"system:masters"\n' for user in users))
    port = url.rpartition(":")[2]
    options = {
        "etcd-servers": store,
        "bind-address": LOOPBACK,
        "advertise-address": LOOPBACK,
        "secure-port": port,
        "cert-dir": str(home),
        "service-cluster-ip-range": "10.96.0.0/16",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(key),
        "service-account-signing-key-file": str(key),
        "token-auth-file": str(tokens),
        "authorization-mode": "RBAC",
        "allow-privileged": "true",  # as in every cluster: admission restricts pods
        **({} if accounts else {"disable-admission-plugins": "ServiceAccount"}),
        "endpoint-reconciler-type": "none",
        "audit-policy-file": str(home / "policy.json"),
        "audit-log-path": str(home / "audit.log"),
    }
    return Program(f"kube-apiserver-{port}", (str(programs / "kube-apiserver"), *_flags(options)))


def _flags(options: dict[str, str]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


def _await(server: LocalApiServer, user: str, started: list[Running]) -> None:
    """Wait until the server is ready and has made its own namespaces."""
    asked = ("/readyz", "/api/v1/namespaces/default")
    if processes.poll(lambda: _dead(started) or all(_answers(server, user, path) for path in asked), START_SECONDS, pause=0.25) and not _dead(
        started
    ):
        return
    logs = "\n".join(f"{program.log} ends:\n{processes.tail(program.log.read_text(errors='replace'), 8)}" for program in started)
    raise LabError(f"no API server at {server.url}\n{logs}")


def _dead(started: list[Running]) -> bool:
    return not all(program.alive() for program in started)


def _answers(server: LocalApiServer, user: str, path: str) -> bool:
    try:
        trust = ssl.create_default_context(cafile=str(server.authority))
        request = urllib.request.Request(server.url + path, headers={"Authorization": f"Bearer {user}"})  # noqa: S310 - ours, and https
        with urllib.request.urlopen(request, context=trust, timeout=5) as reply:  # noqa: S310
            return bool(reply.status == http.HTTPStatus.OK)
    except OSError:  # no server yet, or no certificate yet
        return False
