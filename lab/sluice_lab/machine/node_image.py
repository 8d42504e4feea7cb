"""A kind node image without an image registry: Kubernetes from the Go module proxy, the rest from Debian's packages.

One binary, `hyperkube`, contains every Kubernetes program, etcd, CoreDNS and the pod network. The name of the command selects the program. One small
image of it gets every image name that kubeadm needs. `lab/kind/README.md` says what works and what does not.
"""

import json
import shutil
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import building, docker, parts, processes
from sluice_lab.machine.processes import run
from sluice_lab.machine.tools import KIND_VERSION, go_environment
from sluice_lab.steps import ProgressStep, step

KUBERNETES = "v1.34.4"  # as in lab/kind/go/go.mod
IMAGE = f"kindest/node:{KUBERNETES}"
_ENTRYPOINT = 'ENTRYPOINT ["/kind/bin/entrypoint", "/sbin/init"]'
_NETWORK = "docker.io/kindest/kindnetd:local"
_IMPORT = """
containerd >/tmp/containerd.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.2; done
ctr --namespace k8s.io images import --all-platforms --no-unpack -
kill %1; wait; rm -f /tmp/containerd.log
"""


def ensure(work: Path) -> str:
    """Build the node image if any of its inputs has changed. A first build takes 5 minutes on two cores."""
    compiled = programs().parent
    inputs = f"{compiled.name} {KIND_VERSION} {parts.digest([*(places.KIND / 'node').iterdir(), Path(__file__).resolve()], places.REPO)}"
    with step(f"node image: {IMAGE}") as current, places.lock(work / "kind" / "lock"):
        if _inputs() == inputs:
            current.note("already there")
        else:
            parts.may_build(IMAGE)
            context = places.made(work / "kind" / "context")
            shutil.copytree(compiled, context / "bin", dirs_exist_ok=True)
            _copy_files(context)
            for target in ("base", "component", "pause"):
                _part(target, context, current)
            _assemble(context, inputs)
            current.note(f"{docker.megabytes(IMAGE)} MB")
    return IMAGE


def programs() -> Path:
    """The path of hyperkube, which needs neither Docker nor root. It is compiled with pause, unless it is there."""
    package, minor = "k8s.io/component-base/version", KUBERNETES.split(".")[1]
    facts = {"gitVersion": KUBERNETES, "gitMajor": "1", "gitMinor": minor, "gitTreeState": "clean"}
    flags = ("-trimpath", "-ldflags", " ".join(["-s -w", *(f"-X {package}.{name}={value}" for name, value in facts.items())]))
    module = places.KIND / "go"

    def compile_all(folder: Path) -> None:
        with step("Kubernetes' programs") as current:
            building.go_build(current, ("./hyperkube", "./pause"), flags, f"{folder}/", cwd=module, env=go_environment())
            current.note(f"hyperkube {(folder / 'hyperkube').stat().st_size // 10**6} MB")

    inputs = (flags, parts.digest((path for path in module.rglob("*") if path.is_file()), module))
    return parts.part("kubernetes", inputs, compile_all) / "hyperkube"


def _copy_files(context: Path) -> None:
    """Copy the node's files: kind's own from the module cache, then those of lab/kind/node."""
    module = run("go", "mod", "download", "-json", f"sigs.k8s.io/kind@{KIND_VERSION}", cwd=context, env=go_environment())
    files = context / "files"
    shutil.rmtree(files, ignore_errors=True)
    shutil.copytree(Path(json.loads(module)["Dir"]) / "images" / "base" / "files", files, copy_function=_copy_writable)
    for folder in (path for path in files.rglob("*") if path.is_dir()):
        folder.chmod(0o755)  # the module cache is read-only
    files.chmod(0o755)
    targets = {"crictl": "usr/local/bin", "entrypoint": "kind/bin"}
    for source in (places.KIND / "node").iterdir():
        if source.suffix == ".yaml":
            shutil.copy(source, places.made(files / "kind" / "manifests"))
        elif source.name in targets:
            shutil.copy(source, files / targets[source.name])
    (files / "kind" / "version").write_text(f"{KUBERNETES}\n")
    for folder in (files / "usr/local/bin", files / "kind/bin"):
        for program in folder.iterdir():
            program.chmod(0o755)


def _copy_writable(source: str, target: str) -> None:
    shutil.copyfile(source, target)
    Path(target).chmod(0o644)


def _part(target: str, context: Path, current: ProgressStep) -> str:
    """Build one stage of the node's Dockerfile; returns the image's id."""
    dockerfile = str(places.KIND / "node" / "Dockerfile")
    arguments = ("--network=host", f"--target={target}", "--file", dockerfile, str(context))
    return building.docker_build(current, arguments, f"kind-{target}", docker.build_environment())


def _inputs() -> str:
    """The inputs of the existing node image; empty if there is none."""
    try:
        return run("docker", "image", "inspect", "--format", '{{index .Config.Labels "inputs"}}', IMAGE).strip()
    except LabError:
        return ""


def _assemble(context: Path, inputs: str) -> None:
    """Copy hyperkube and the control plane's images into a container of the base, and commit it."""
    unconfined = ("--security-opt", "seccomp=unconfined")
    container = run("docker", "run", "--detach", *unconfined, "--entrypoint", "sleep", "kind-base", "infinity").strip()
    try:
        run("docker", "cp", str(context / "bin" / "hyperkube"), f"{container}:/usr/bin/hyperkube")
        names = _tagged(container, context)
        processes.pipe(("docker", "save", *names), ("docker", "exec", "-i", container, "bash", "-ec", _IMPORT))
        run("docker", "rmi", *names)
        if docker.has_image(IMAGE):
            run("docker", "rmi", IMAGE)
        changes = ("--change", f'LABEL inputs="{inputs}"', "--change", _ENTRYPOINT)
        run("docker", "commit", *changes, container, IMAGE)
    finally:
        run("docker", "rm", "--force", "--volumes", container)


def _tagged(container: str, context: Path) -> list[str]:
    """Tag the two images with the names in kubeadm, containerd's configuration and the network's manifest."""
    listed = run("docker", "exec", container, "kubeadm", "config", "images", "list", "--kubernetes-version", KUBERNETES)
    config = (context / "files/etc/containerd/config.toml").read_text()
    pause = next(line.split('"')[1] for line in config.splitlines() if line.strip().startswith("sandbox_image = "))
    components = [name for name in listed.split() if "/pause:" not in name] + [_NETWORK]
    for name in components:
        run("docker", "tag", "kind-component", name)
    run("docker", "tag", "kind-pause", pause)
    return [*components, pause]
