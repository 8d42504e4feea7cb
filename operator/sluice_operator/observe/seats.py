"""The seats in a pod of a pool, from its annotations (docs/pools.md, "A seat"); and the annotations, from seats. Pure.

Any account that may annotate the pod may write them, so what is read is bounded. Only a pod that a pool controls has seats, and a seat names the uid
of its pod: a copy of such a pod keeps the annotations, and has none.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from sluice_operator.cluster.port import POOL_KIND
from sluice_operator.names import END_REACHED, GROUP
from sluice_operator.observe.parse import EXITS
from sluice_operator.plan import known_words
from sluice_operator.state.seats import Seat
from sluice_operator.state.serialization import TEXT, load_report
from sluice_operator.state.status import Exit
from sluice_operator.untrusted.values import EARLIEST, WORDS, moment, part, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sluice_operator.state.objects import Pod

Json = dict[str, Any]

SEAT, LEAVE, REPORT = f"seat.{GROUP}/", f"leave.{GROUP}/", f"report.{GROUP}/"
KEY = re.compile(r"([a-z0-9-]{1,64})\.([1-9]\d{0,8})")
CONSUMER_NAME = re.compile(r"[a-z]([-a-z0-9]{0,43}[a-z0-9])?")
SEATS = 256  # that are read of a pod
ASKED = {"Drained", END_REACHED}  # reasons of an exit 0 that no exception can give


class SeatsFound(NamedTuple):
    """Of one consumer: its seats as drivers' pods, and how those ended that are over, by uid."""

    drivers: tuple[Pod, ...]
    exits: dict[str, Exit]
    hosts: dict[str, tuple[Pod, Seat]]
    """By the uid of a seat: the pod that it is in, and the seat."""
    over: dict[str, tuple[Pod, Seat]]
    """The same, of those that are over, in pods that run."""


def of(uid: str, hosts: Iterable[tuple[Pod, Iterable[Seat]]]) -> SeatsFound:
    """The seats that a consumer has in these pods, which have these seats."""
    found = [(host, seat) for host, there in hosts for seat in there if seat.consumer == uid]
    present = [(host, seat) for host, seat in found if not seat.is_over(host)]
    ends = {seat.uid_in(host): end for host, seat in found if (end := seat.end_in(host))}
    drivers = tuple(seat.as_pod(host) for host, seat in present)
    over = [(host, seat) for host, seat in found if seat.is_over(host) and host.exit is None]
    return SeatsFound(drivers, ends, _by_uid(present), _by_uid(over))


def _by_uid(found: Iterable[tuple[Pod, Seat]]) -> dict[str, tuple[Pod, Seat]]:
    return {seat.uid_in(host): (host, seat) for host, seat in found}


def seats(raw: Json, host: Pod) -> tuple[Seat, ...]:
    """All seats of a pod; none of a pod that no pool controls."""
    if host.owner_kind != POOL_KIND:
        return ()
    notes = part(raw, "metadata", "annotations")
    keys = [key for key in sorted(notes) if key.startswith(SEAT)][:SEATS]
    return tuple(seat for key in keys if (seat := _seat(notes, key.removeprefix(SEAT), host)))


def _seat(notes: Json, key: str, host: Pod) -> Seat | None:
    named, written = KEY.fullmatch(key), _document(text(notes, SEAT + key, TEXT))
    name = text(written, "name")
    if named is None or text(written, "pod") != host.uid or name is None or CONSUMER_NAME.fullmatch(name) is None:
        return None
    answer = text(notes, REPORT + key, TEXT)
    said = _document(answer)
    return Seat(
        consumer=named[1],
        name=name,
        attempt=int(named[2]),
        spec_hash=text(written, "specHash"),
        leave_by=moment(notes.get(LEAVE + key)),
        report=load_report(answer) if "phase" in said else None,
        began=moment(said.get("began")),
        exit=_exit(part(said, "exit")),
    )


def _exit(said: Json) -> Exit | None:
    """How a run ended, with the words that a driver in a pod of its own may use: a reason may be the name of an exception of the pipeline."""
    word = text(said, "reason")
    if not word:
        return None
    code = whole(said.get("code"))
    own = code == 0 and word in ASKED
    return Exit(
        code=code,
        reason=word if own else known_words.reason(word, EXITS.get(-1 if code is None else code, "Failed")),
        message=known_words.message(None if own else word, text(said, "message", WORDS)),
        at=moment(said.get("at")) or EARLIEST,
    )


def _document(words: str | None) -> Json:
    try:
        found = orjson.loads(words) if words else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def put(seat: Seat, host: str, config: Json, *, table_made: bool = False) -> dict[str, str]:
    """The annotation that puts a seat into the pod with this uid. Two operators that name the same attempt write the same."""
    words = {"name": seat.name, "pod": host, "specHash": seat.spec_hash, "config": config} | ({"tableMade": True} if table_made else {})
    return {f"{SEAT}{seat.consumer}.{seat.attempt}": json.dumps(words, sort_keys=True)}


def leave(seat: Seat) -> dict[str, str]:
    """The annotation that asks a seat to leave. It is another one, so that a late `put` takes nothing back."""
    return {f"{LEAVE}{seat.consumer}.{seat.attempt}": seat.leave_by.isoformat() if seat.leave_by else ""}


def cleared(seat: Seat) -> dict[str, None]:
    """The annotations of a seat that is over, to be removed."""
    return {f"{kind}{seat.consumer}.{seat.attempt}": None for kind in (SEAT, LEAVE, REPORT)}
