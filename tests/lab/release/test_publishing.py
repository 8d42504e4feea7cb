"""What `make publish` pushes, to a real registry on loopback, and what it refuses."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from small_images import oci_archive, of_several

from sluice_lab import places
from sluice_lab.errors import CommandFailedError, LabError
from sluice_lab.machine import registry as registries
from sluice_lab.machine.processes import run
from sluice_lab.release import charts, dist, oci, publishing, versions
from sluice_lab.release.publishing import Registry

pytestmark = [pytest.mark.built, pytest.mark.slow]

VERSION = versions.declared(places.REPO)
CHART = f"charts/sluice:{VERSION}"
USER, PASSWORD = "sluice", "a secret"
HASHED = "$2b$05$abcdefghijklmnopqrstuuIAEipimVgSTxGS2VyWH9AhzRz3iJI3."  # bcrypt of PASSWORD, with five rounds


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with registries.registry(places.work()) as found:
        yield found


@pytest.fixture
def registry(address: str, request: pytest.FixtureRequest) -> Registry:
    return Registry(f"{address}/{request.node.name.replace('_', '-')}", plain_http=True)


def test_images_and_chart_come_back_as_they_were_made_and_are_pushed_once(
    registry: Registry, released: Callable[..., Path], helm: str, skopeo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a publication that was interrupted is run again."""
    folder = released(registry.name)
    publishing.publish(folder, registry, helm)
    for push in ("push_image", "push_chart"):
        monkeypatch.setattr(Registry, push, lambda *_: pytest.fail("pushed again"))
    publishing.publish(folder, registry, helm)
    run(helm, "pull", f"oci://{registry.name}/charts/sluice", f"--version={VERSION}", f"--destination={tmp_path}", "--plain-http")
    assert (tmp_path / f"sluice-{VERSION}.tgz").read_bytes() == (folder / f"sluice-{VERSION}.tgz").read_bytes()
    for name in (charts.OPERATOR, charts.CONSUMER):
        asked = (skopeo, "inspect", "--tls-verify=false", "--format={{.Digest}}", f"docker://{registry.name}/{name}:{VERSION}")
        assert run(*asked).strip() == oci.digest(folder / f"{name}-{VERSION}.oci.tar")


def test_an_image_of_two_processors_is_pushed_whole(registry: Registry, skopeo: str, tmp_path: Path) -> None:
    parts = [oci_archive(tmp_path / f"{each}.tar", "two:1", {"etc/processor": each.encode()}, processor=each) for each in ("amd64", "arm64")]
    both = of_several(tmp_path / "both.tar", parts, tmp_path / "layout")
    registry.push_image(both, "two:1")
    found = json.loads(registry.manifest("two:1") or b"{}")
    assert [entry["platform"]["architecture"] for entry in found["manifests"]] == ["amd64", "arm64"]
    for each in ("amd64", "arm64"):
        assert run(skopeo, "inspect", "--tls-verify=false", f"--override-arch={each}", f"docker://{registry.name}/two:1")


def test_a_published_version_is_never_replaced(registry: Registry, released: Callable[..., Path], helm: str) -> None:
    """Somebody may have installed it."""
    first, second = released(registry.name, "one"), released(registry.name, "two")
    publishing.publish(first, registry, helm)
    with pytest.raises(LabError, match=r"is published, with other content.*release another version"):
        publishing.publish(second, registry, helm)
    kept = publishing.of_manifest(registry.manifest(f"sluice-operator:{VERSION}") or b"")
    assert kept == oci.digest(first / f"sluice-operator-{VERSION}.oci.tar")
    before, chart = registry.manifest(CHART), first / f"sluice-{VERSION}.tgz"
    chart.write_bytes(chart.read_bytes() + b"\0")
    dist.write(first, dist.Release(VERSION, "", 0, registry.name, []))
    with pytest.raises(LabError, match=f"{CHART} is published, with other content"):
        publishing.publish(first, registry, helm)
    assert registry.manifest(CHART) == before


def test_a_file_that_was_changed_is_not_published(registry: Registry, released: Callable[..., Path], helm: str) -> None:
    folder = released(registry.name)
    with (folder / f"sluice-{VERSION}.tgz").open("ab") as chart:
        chart.write(b"\0")
    with pytest.raises(LabError, match=f"sluice-{VERSION}.tgz is missing, or not as `make release` made it"):
        publishing.publish(folder, registry, helm)
    assert registry.manifest(f"sluice-operator:{VERSION}") is None


def test_a_release_for_another_registry_is_refused(registry: Registry, released: Callable[..., Path], helm: str) -> None:
    """Its chart would name images that are not there."""
    with pytest.raises(LabError, match=f"is a release for registry.example/sluice.*make release VERSION={VERSION} REGISTRY={registry.name}"):
        publishing.publish(released("registry.example/sluice"), registry, helm)
    assert registry.manifest(f"sluice-operator:{VERSION}") is None


def test_a_registry_without_tls_is_refused_unless_told(registry: Registry, released: Callable[..., Path], helm: str) -> None:
    """A password would be sent in the clear."""
    with pytest.raises(CommandFailedError, match="HTTP response to HTTPS client"):
        publishing.publish(released(registry.name), Registry(registry.name), helm)
    assert registry.manifest(f"sluice-operator:{VERSION}") is None


def test_credentials_are_dockers(released: Callable[..., Path], helm: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with registries.registry(places.work(), users={USER: HASHED}) as address:
        registry = Registry(f"{address}/closed", plain_http=True)
        folder = released(registry.name)
        monkeypatch.setenv("DOCKER_CONFIG", str(places.made(tmp_path / "docker")))
        with pytest.raises(CommandFailedError, match="unauthorized"):
            publishing.publish(folder, registry, helm)
        known = {"auths": {address: {"auth": base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}}}
        (tmp_path / "docker" / "config.json").write_text(json.dumps(known))
        publishing.publish(folder, registry, helm)
        assert registry.manifest(CHART) is not None
        shutil.rmtree(tmp_path / "docker")
