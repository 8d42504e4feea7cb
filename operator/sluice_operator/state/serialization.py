"""JSON to values and back: `.status`, and the driver's report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from sluice_operator.names import camel, printable
from sluice_operator.state.objects import Report
from sluice_operator.state.status import DrainStatus, Phase, StandbyState, Status, TrialState, VersionStatus
from sluice_operator.untrusted import bounds
from sluice_operator.untrusted.values import EARLIEST, LATEST, MOST, Unreadable, moment

STATUS = TypeAdapter(Status)
_REPORT = TypeAdapter(Report)
TEXT = 131_072  # characters of a report: half of what all annotations of a pod may have
WORD, WORDS, NAME, SHARD = 64, 1024, 253, 128  # characters of a word, of a warning, of a pod's name, and of a shard's, as Kinesis has it
LISTED, WARNINGS = 50, 16  # of a report: entries of any list that are looked at, as many as a status shows of drains
VERSIONS, IMAGE = 10, 300  # of a report, and characters of an image's name, as a driver keeps it
SPECS = ("lastGoodSpec", "provenSpec")
STATES: dict[str, type[StrEnum]] = {"standby": StandbyState, "trial": TrialState}

Json = dict[str, Any]


def load_status(raw: Json | str | None) -> Status:
    """The status as stored; a new resource has none.

    Its specs are bounded as a spec is, not as a part of the status. One that is not a spec counts as none, and the rest is read.

    Raises:
        Unreadable: the status has content that the operator never writes, and the message names the first such field; or it was not read.
    """
    if isinstance(raw, str):
        raise Unreadable(f"status: {raw}")
    stored, specs = _apart(raw or {})
    if unusable := bounds.problem(stored, "status"):
        raise Unreadable(unusable)
    try:
        status = STATUS.validate_python(stored)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Unreadable(f"{'.'.join(['status', *map(str, first['loc'])])}: {first['msg']}") from None
    if (field := next(_impossible_times(status, "status"), None)) is not None:
        raise Unreadable(f"{field}: is not a time with a zone between the years 2000 and 2200")
    return replace(status, last_good_spec=specs.get("lastGoodSpec"), proven_spec=specs.get("provenSpec"))


def _apart(raw: Any) -> tuple[Any, dict[str, Json]]:
    """The status without its specs and without what only a later operator knows; and those specs."""
    if not isinstance(raw, dict):
        return raw, {}
    specs = {key: raw[key] for key in SPECS if isinstance(raw.get(key), dict) and not bounds.problem(raw[key], f"status.{key}")}
    kept = {key: value for key, value in raw.items() if key not in SPECS and not _is_newer(key, value)}
    return kept, specs


def _is_newer(key: str, value: Any) -> bool:
    """Whether a later operator wrote this, in one word: a phase, on which nothing depends, or the state of a standby or a trial. They count as none.

    The pod of such a standby is then a stray, so it is deleted. `attempts` still counts it. The version of such a trial is tried once more.
    """
    if key in STATES and isinstance(value, dict):
        return _is_unknown(value.get("state"), STATES[key])
    return key == "phase" and _is_unknown(value, Phase)


def _is_unknown(word: Any, known: type[StrEnum]) -> bool:
    return isinstance(word, str) and word.isalpha() and word not in set(known)


def _impossible_times(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, datetime):
        if value.tzinfo is None or not EARLIEST.year <= value.year < LATEST.year:
            yield path
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            yield from _impossible_times(item, f"{path}[{at}]")
    elif is_dataclass(value):
        for item in fields(value):
            yield from _impossible_times(getattr(value, item.name), f"{path}.{camel(item.name)}")


def dump_status(status: Status) -> Json:
    """JSON for the API server, without what is None; specs are kept exactly as written."""
    document: Json = STATUS.dump_python(replace(status, last_good_spec=None, proven_spec=None), mode="json", by_alias=True, exclude_none=True)
    specs = zip(SPECS, (status.last_good_spec, status.proven_spec), strict=True)
    return document | {key: spec for key, spec in specs if spec is not None}


def dropped(sent: Any, stored: Any, path: str = "status") -> str | None:
    """The first field of what was sent that the server did not store: an older CRD drops what it does not know. None if all is there."""
    if isinstance(sent, dict):
        for key, value in sent.items():
            where = f"{path}.{key}"
            if not isinstance(stored, dict) or key not in stored:
                return where
            if path_dropped := dropped(value, stored[key], where):
                return path_dropped
    if isinstance(sent, list) and isinstance(stored, list):
        pairs = enumerate(zip(sent, stored, strict=False))
        return next((path_dropped for at, (mine, other) in pairs if (path_dropped := dropped(mine, other, f"{path}[{at}]"))), None)
    return None


def load_report(text: str | None) -> Report | None:
    """The driver's report; None when there is none, it cannot be read, or no driver could mean it. What a newer driver adds is passed over.

    Any account that may annotate the pod may write one, so what becomes part of the status is bounded.
    """
    if text is None or len(text) > TEXT:
        return None
    try:
        raw = orjson.loads(text)
        cut = {key: value[:LISTED] if isinstance(value, list) else value for key, value in raw.items()}
        known = {key: value for key, value in cut.items() if value is not None} | {"deadline": moment(raw.get("deadline"))}
        return _bounded(_REPORT.validate_python(known))
    except (ValueError, AttributeError, OverflowError):
        return None


def _bounded(report: Report) -> Report | None:
    numbers = [value for value in (getattr(report, item.name) for item in fields(report)) if isinstance(value, int)]
    if any(abs(value) >= MOST for value in [*numbers, *(version.first_batch for version in report.versions)]):
        return None
    rate, busy, shard = report.records_per_second, report.busy, report.farthest_shard
    return replace(
        report,
        phase=printable(report.phase[:WORD]),
        records_per_second=rate if rate is not None and math.isfinite(rate) else None,
        busy=busy if busy is not None and 0 <= busy <= 1 else None,
        farthest_shard=None if shard is None else printable(shard[:SHARD]),
        draining=tuple(map(_drain, report.draining)),
        warnings=tuple(printable(text[:WORDS]) for text in report.warnings[:WARNINGS]),
        versions=tuple(map(_version, report.versions[:VERSIONS])),
    )


def _version(version: VersionStatus) -> VersionStatus:
    return replace(version, since=_sound(version.since), hash=_short(version.hash), image=_short(version.image, IMAGE), reset=_short(version.reset))


def _short(text: str | None, most: int = WORD) -> str | None:
    return None if text is None else printable(text[:most])


def _drain(drain: DrainStatus) -> DrainStatus:
    return replace(drain, pod=printable(drain.pod[:NAME]), since=_sound(drain.since), deadline=_sound(drain.deadline))


def _sound(time: datetime | None) -> datetime | None:
    return None if time is None else moment(time.isoformat())
