"""Sluice's images: the Debian base from a registry or from Debian's packages, then both targets of the Dockerfile.

A tag is the hash of all inputs of the image. So an existing image is current, and pods never run a stale one under a moving tag.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places
from sluice_lab.machine import building, docker, parts
from sluice_lab.machine.processes import answers, pipe, run
from sluice_lab.steps import ProgressStep, step

BASE = "debian:bookworm-slim"
INPUTS = (
    "Dockerfile",
    ".dockerignore",
    "LICENSE",
    "README.md",
    "constraints/hashes",
    "pyproject.toml",
    "consumer",
    "operator",
)
CODE = (  # inputs of the last layer only
    "consumer/pyspark_sluice",
    "consumer/sluice_checkpoints",
    "consumer/sluice_consumer",
    "operator",
    "README.md",
    "LICENSE",
)
_BUNDLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")


@dataclass(frozen=True)
class Images:
    """The tags of Sluice's two images."""

    operator: str
    consumer: str


def registry_answers(image: str = BASE) -> bool:
    """Whether an image registry answers within ten seconds."""
    return answers("docker", "manifest", "inspect", image, seconds=10)


def base(work: Path) -> None:
    """Ensure `debian:bookworm-slim`: pulled, or built from Debian's packages if no registry answers."""
    with step(f"image {BASE}") as current, places.lock(work / "images.lock"):
        if docker.has_image(BASE):
            current.note("already there")
            return
        parts.may_build(f"image {BASE}")
        if registry_answers():
            run("docker", "pull", "--quiet", BASE)
            current.note("pulled")
        else:
            docker.apt_install("debootstrap", unless=("debootstrap",))
            _debootstrap(places.made(work / "images") / "rootfs")
            current.note(f"{docker.megabytes(BASE)} MB, built from Debian's packages: no registry answers")


def build(work: Path) -> Images:
    """Build the operator's and the consumer's image, unless they exist."""
    with places.lock(work / "images.lock"):
        return _build(work)


def build_image(
    current: ProgressStep,
    context: Path,
    target: str,
    tag: str,
    labels: Mapping[str, str] | None = None,
    arguments: Mapping[str, str] | None = None,
) -> None:
    """Build one target of the Dockerfile in a folder. It uses the host's network, whose name servers work."""
    named = [f"--label={name}={value}" for name, value in (labels or {}).items()]
    named += [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    building.docker_build(current, ("--network=host", f"--target={target}", *named, str(context)), tag, docker.build_environment())


def own_authority() -> Path | None:
    """The CA bundle of the local network, if the environment names one in a variable that build tools read."""
    named = (Path(os.environ[name]) for name in _BUNDLES if name in os.environ)
    return next((bundle for bundle in named if bundle.is_file()), None)


def _build(work: Path) -> Images:
    context = _context(work)
    below, whole = _digest(context, without=CODE), _digest(context)
    code = f"sluice-code:{whole}"
    if not docker.has_image(code):
        parts.may_build(f"image {code}")
        with step(f"image {code}") as current:
            build_image(current, context, "code-layer", code)
    tags = []
    for target in ("operator", "consumer"):
        tag, base_tag = f"sluice-{target}:{whole}", f"sluice-{target}-base:{below}"
        tags.append(tag)
        with step(f"image {tag}") as current:
            if docker.has_image(tag):
                current.note("already there")
                continue
            parts.may_build(f"image {tag}")
            build_image(current, context, f"{target}-base", base_tag)
            build_image(current, context, target, tag, {docker.BASE_LABEL: base_tag, docker.CODE_LABEL: code})
            current.note(f"{docker.megabytes(tag)} MB")
    return Images(*tags)


def _context(work: Path) -> Path:
    """A copy of the images' inputs, and the local network's CA bundle."""
    context = work / "images" / "context"
    shutil.rmtree(context, ignore_errors=True)
    for name in INPUTS:
        source, target = places.REPO / name, context / name
        places.made(target.parent)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        else:
            shutil.copy2(source, target)
    if bundle := own_authority():
        shutil.copy(bundle, context / "ca.crt")
    return context


def _digest(context: Path, without: tuple[str, ...] = ()) -> str:
    """A hash of the files in a folder, without some paths."""
    files = (path for path in context.rglob("*") if path.is_file())
    return parts.digest((path for path in files if not any(path.is_relative_to(context / name) for name in without)), context)


def _debootstrap(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    run("debootstrap", "--variant=minbase", "bookworm", str(root))
    for folder in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        shutil.rmtree(root / folder, ignore_errors=True)
        (root / folder).mkdir()
    pipe(("tar", "-C", str(root), "-c", "."), ("docker", "import", "--change", 'CMD ["bash"]', "-", BASE))
    shutil.rmtree(root)
