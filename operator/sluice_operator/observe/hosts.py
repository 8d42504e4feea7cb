"""The pods of pools with the seats in them, as the watch showed them last, and as a live read does.

Facts are kept that no read shows: when a report's number and its open batch were seen first, and when a pod's deletion was.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from sluice_operator.observe import parse, seats
from sluice_operator.observe.cache import LastReport, ending_here
from sluice_operator.untrusted.values import named, part, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from sluice_operator.cluster.port import Json
    from sluice_operator.observe.cache import ResourceSnapshot
    from sluice_operator.state.objects import Pod
    from sluice_operator.state.seats import Seat


@dataclass(frozen=True, slots=True)
class Host:
    """A pod of a pool, its seats, and the bytes of its annotations."""

    pod: Pod
    seats: tuple[Seat, ...]
    size: int


class Changed(NamedTuple):
    """What an event of such a pod changed: names of the consumers whose seats did; and whether the pod itself did."""

    consumers: dict[str, bool]
    """By name: whether a plan may depend on it; not so on figures."""
    pod: bool


class Hosts:
    """Fed by the watch of pods; any order, any repetition."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[str, str], Host] = {}
        self._heard: dict[str, LastReport] = {}
        self._lock = threading.Lock()  # watches feed it on the event loop, reconciles read it on threads

    def see(self, raw: Json, now: datetime, *, gone: bool = False) -> Changed:
        """Take in one event.

        Raises:
            Unreadable: the pod has no name, namespace or uid.
        """
        key, host = (named(raw, "namespace"), named(raw, "name")), None if gone else _host(raw)
        with self._lock:
            before, after = self._hosts.get(key), host and self._stamped(raw, host, now)
            if after is not None:
                self._hosts[key] = after
            elif before is not None and before.pod.uid == named(raw, "uid"):
                del self._hosts[key]
                self._forget(before)
        return _changed(before, after)

    def of_namespace(self, namespace: str) -> tuple[Host, ...]:
        """As the watch showed them last."""
        with self._lock:
            return tuple(host for key, host in self._hosts.items() if key[0] == namespace)

    def read(self, raws: Iterable[Json], now: datetime) -> tuple[Host, ...]:
        """Of a live read. The watch's are left as they are."""
        read = [(raw, _host(raw)) for raw in raws]
        with self._lock:
            return tuple(self._with_all(raw, self._stamped(raw, host, now)) for raw, host in read)

    def reported_at(self, uid: str | None) -> datetime | None:
        """When the last report of this seat was seen first."""
        with self._lock:
            heard = self._heard.get(uid or "")
        return heard.at if heard else None

    def drivers(self, snapshots: Iterable[ResourceSnapshot]) -> list[ResourceSnapshot]:
        """With the seat of each consumer whose status names one: its report has the figures."""
        with self._lock:
            hosts = {host.pod.uid: host for host in self._hosts.values()}
        return [each if each.driver else each._replace(driver=_driver(hosts, text(part(each.body, "status", "driver"), "uid"))) for each in snapshots]

    def _stamped(self, raw: Json, host: Host, now: datetime) -> Host:
        before = self._hosts.get((named(raw, "namespace"), host.pod.name))
        pod = ending_here(before.pod if before else None, host.pod, raw, now)
        return replace(host, pod=pod, seats=tuple(self._heard_at(pod, seat, now) for seat in host.seats))

    def _with_all(self, raw: Json, host: Host) -> Host:
        """With the size that the watch showed, if it is more: a live read leaves annotations out (`kept`)."""
        shown = self._hosts.get((named(raw, "namespace"), host.pod.name))
        return replace(host, size=max(host.size, shown.size)) if shown and shown.pod.uid == host.pod.uid else host

    def _heard_at(self, pod: Pod, seat: Seat, now: datetime) -> Seat:
        if seat.report is None:
            return seat
        heard = self._heard.setdefault(seat.uid_in(pod), LastReport())
        heard.hear(seat.report, now)
        return replace(seat, reported_at=heard.at, batch_at=heard.batch_at)

    def _forget(self, host: Host) -> None:
        for seat in host.seats:
            self._heard.pop(seat.uid_in(host.pod), None)


def _host(raw: Json) -> Host:
    pod, notes = parse.pod(raw), part(raw, "metadata", "annotations")
    return Host(pod, seats.seats(raw, pod), sum(len(key) + len(note) for key, note in notes.items() if isinstance(note, str)))


def _driver(hosts: Mapping[str, Host], uid: str | None) -> Pod | None:
    host = hosts.get((uid or "").partition("/")[0])
    seats = (seat for seat in host.seats if seat.uid_in(host.pod) == uid) if host else ()
    return next((seat.as_pod(host.pod) for seat in seats if host), None)


def _changed(before: Host | None, after: Host | None) -> Changed:
    old, new = _by_seat(before), _by_seat(after)
    same = (before and before.pod) == (after and after.pod)
    consumers: dict[str, bool] = {}
    for key in old.keys() | new.keys():
        former, other = old.get(key), new.get(key)
        if former != other or not same:
            matters = former is None or other is None or not same or _without_figures(former) != _without_figures(other)
            name = (other or former).name  # type: ignore[union-attr]  # one of the two has the key
            consumers[name] = consumers.get(name, False) or matters
    return Changed(consumers, not same)


def _by_seat(host: Host | None) -> dict[str, Seat]:
    return {} if host is None else {seat.uid_in(host.pod): seat for seat in host.seats}


def _without_figures(seat: Seat) -> Seat:
    return replace(seat, reported_at=None, batch_at=None, report=seat.report.without_figures if seat.report else None)
