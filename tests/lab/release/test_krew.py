"""The plugin of kubectl as krew installs it: an archive in an empty folder, and a Python without packages."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest
import yaml

from sluice_checkpoints.letters.letter import DeadLetter
from sluice_lab import places
from sluice_lab.release import krew, oci, versions, wheels
from sluice_lab.release.source import SourceTree

LETTER = DeadLetter("c-1", "orders", "shardId-000000000000", "49", 0, 1_700_000_000_123, "k", b"{}", 7, 3, "ValueError: no")
VERSION, DOWNLOADS = "7.8.9", "https://downloads.test/v7.8.9"
ARCH = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
HERE = next((one for one in krew.PLATFORMS if (one.os, one.arch) == (platform.system().lower(), ARCH.get(platform.machine()))), None)
PYTHON = "{}.{}".format(*sys.version_info[:2])


def build(source: SourceTree, out: Path) -> Path:
    if HERE is None or PYTHON not in krew.PYTHONS:
        pytest.skip("no archive is made for this platform and this Python")
    wheel = wheels.build(source, versions.of_python(versions.declared(source.folder)), out).wheel
    (made,) = krew.build(source, VERSION, wheel, out, krew.ArchiveTargets((HERE,), (PYTHON,)))
    return made


@pytest.fixture(scope="module")
def archive(source: SourceTree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all claims (20 seconds: packages are downloaded)."""
    return build(source, tmp_path_factory.mktemp("krew"))


@pytest.fixture(scope="module")
def installed(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As krew does: unpacked, and a link to the program in a folder of the PATH. There `python3` has no packages."""
    folder = tmp_path_factory.mktemp("installed")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "store", filter="data")
    venv.create(folder / "python", with_pip=False)
    (folder / "bin").mkdir()
    (folder / "bin" / krew.PROGRAM).symlink_to(folder / "store" / krew.PROGRAM)
    return {"PATH": os.pathsep.join(map(str, (folder / "bin", folder / "python" / "bin"))), "HOME": str(folder)}


def sluice(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([krew.PROGRAM, *arguments], env=env, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_runs_with_a_python_that_has_no_packages(installed: dict[str, str]) -> None:
    said = sluice(installed, "--help").stdout
    assert said.startswith("Usage: kubectl sluice ")
    assert all(f"\n  {name} " in said for name in ("status", "report", "migrate", "dead-letters", "show"))
    assert "Not here: run, dev, rollback-sink." in said
    assert sluice(installed, "--version").stdout.strip() == versions.of_python(versions.declared(places.REPO))


@pytest.mark.slow
def test_its_packages_are_enough_for_a_cluster_and_for_aws(installed: dict[str, str], tmp_path: Path) -> None:
    config: dict[str, object] = {"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}], "users": [{"name": "u", "user": {}}]}
    config |= {"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    asked = sluice(installed, "status", f"--kubeconfig={tmp_path / 'config'}")
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr.startswith("CommandError (exit 1) no answer to list KinesisConsumers")
    (tmp_path / LETTER.path).parent.mkdir(parents=True)
    (tmp_path / LETTER.path).write_text(LETTER.to_json())
    read = sluice(installed, "dead-letters", "list", f"--path={tmp_path}")
    assert (read.returncode, "1 dead letter\n" in read.stdout) == (0, True), read.stderr
    planned = sluice(installed, "migrate", f"--plan={tmp_path / 'config'}")
    assert "has 0 KinesisConsumers" in " ".join(planned.stderr.split())


@pytest.mark.slow
def test_the_same_files_give_the_same_archive(archive: Path, source: SourceTree, tmp_path: Path) -> None:
    assert oci.sha256(build(source, tmp_path)) == oci.sha256(archive)
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert {"kubectl-sluice", "LICENSE"} < set(names)
    assert [name for name in names if name.endswith((".pyc", "RECORD", "direct_url.json"))] == []


def test_the_manifest_has_each_platform_with_the_checksum_of_its_archive(tmp_path: Path) -> None:
    """As krew's API wants it (krew.sigs.k8s.io, "Plugin manifest")."""
    built = [tmp_path / krew.archive_name(VERSION, one) for one in krew.PLATFORMS]
    for path in built:
        path.write_text(path.name)
    found = yaml.safe_load(krew.manifest(VERSION, DOWNLOADS, built))
    assert (found["kind"], found["metadata"]["name"], found["spec"]["version"]) == ("Plugin", "sluice", "v7.8.9")
    assert len(found["spec"]["shortDescription"]) <= 50
    platforms = {tuple(one["selector"]["matchLabels"].values()): one for one in found["spec"]["platforms"]}
    assert set(platforms) == {("linux", "amd64"), ("linux", "arm64"), ("darwin", "amd64"), ("darwin", "arm64")}
    for path in built:
        (one,) = [each for each in platforms.values() if each["uri"] == f"{DOWNLOADS}/{path.name}"]
        assert (one["sha256"], one["bin"]) == (oci.sha256(path), krew.PROGRAM)


def test_what_is_compiled_is_known() -> None:
    """A new dependency of the programs that is compiled, too, would be missing on all platforms but one."""
    site = Path(yaml.__file__).parents[1]
    kinds = {name: list(site.glob(f"{name.replace('-', '_')}-{version}.dist-info/WHEEL")) for name, version in krew.pins().items()}
    compiled = {name for name, files in kinds.items() for file in files if "Root-Is-Purelib: false" in file.read_text()}
    assert compiled - {"pyyaml", "charset-normalizer"} == set(krew.NATIVE)
