"""What the lab made on this machine, and who removes it."""

from __future__ import annotations

from pathlib import Path

from sluice_lab.scenario import installing
from sluice_lab.scenario.installing import Note


def test_the_last_of_two_clusters_stops_the_docker_daemon(tmp_path: Path) -> None:
    """Whoever started it: the other one's pods would be gone."""
    one, other = Note(tmp_path, "sluice-1"), Note(tmp_path, "sluice-1-more")
    one.add(docker=True, cluster="sluice-1")
    other.add(cluster="sluice-1-more")
    assert not one.drop()
    assert other.read() == {"cluster": "sluice-1-more", "docker": True}
    assert other.drop()
    assert not list(tmp_path.glob("*.json"))


def test_a_docker_daemon_that_was_there_before_stays(tmp_path: Path) -> None:
    note = Note(tmp_path, "sluice-1")
    assert not note.drop()
    note.add(release="sluice-1")
    assert not note.drop()


class FakeCluster:
    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def helm(self, *arguments: str) -> str:
        self.calls.append(arguments)
        return ""

    def kubectl(self, *arguments: str) -> str:
        self.calls.append(arguments)
        return f"{arguments[-2]}/one" if "get" in arguments else ""


def test_a_namespace_is_deleted_once_no_finalizer_of_a_consumer_or_a_pool_is_left() -> None:
    """Otherwise the namespace of an interrupted run would stay for ever."""
    found = FakeCluster()
    installing.delete_namespace(found)  # type: ignore[arg-type]  # no program is called
    patched = [call[2] for call in found.calls if "patch" in call]
    assert patched == ["kinesisconsumers/one", "kinesisconsumerpools/one"]
    assert found.calls[0][0] == "uninstall"
    assert found.calls[-1][:2] == ("delete", "namespace")
