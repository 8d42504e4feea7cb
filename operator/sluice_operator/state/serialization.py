"""JSON to values and back: `.status`, and the driver's report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from sluice_operator.names import camel, printable
from sluice_operator.state.objects import Report
from sluice_operator.state.status import DrainStatus, Status
from sluice_operator.untrusted import bounds
from sluice_operator.untrusted.values import EARLIEST, LATEST, MOST, Unreadable, moment

STATUS = TypeAdapter(Status)
_REPORT = TypeAdapter(Report)
TEXT = 131_072  # characters of a report: half of what all annotations of a pod may have
WORD, WORDS, NAME = 64, 1024, 253  # characters of a word, of a warning, and of a pod's name
DRAINS, WARNINGS = 50, 16  # of a report: as many drains as a status shows

Json = dict[str, Any]


def load_status(raw: Json | None) -> Status:
    """The status as stored; a new resource has none.

    Its last good spec is bounded as a spec is, not as a part of the status. One that is no spec counts as none, and the rest is read.

    Raises:
        Unreadable: the status has content that the operator never writes; the message names the first such field.
    """
    stored, good = _apart(raw or {})
    if unusable := bounds.problem(stored, "status"):
        raise Unreadable(unusable)
    try:
        status = STATUS.validate_python(stored)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Unreadable(f"{'.'.join(['status', *map(str, first['loc'])])}: {first['msg']}") from None
    if (found := next(_impossible_times(status, "status"), None)) is not None:
        raise Unreadable(f"{found}: is not a time with a zone between the years 2000 and 2200")
    return replace(status, last_good_spec=good)


def _apart(raw: Any) -> tuple[Any, Json | None]:
    """The status without its last good spec, and that."""
    if not isinstance(raw, dict):
        return raw, None
    good = raw.get("lastGoodSpec")
    usable = isinstance(good, dict) and not bounds.problem(good, "status.lastGoodSpec")
    return {key: value for key, value in raw.items() if key != "lastGoodSpec"}, good if usable else None


def _impossible_times(value: Any, path: str) -> Iterator[str]:
    """The fields whose time cannot be computed with."""
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
    """JSON for the API server, without what is None; `lastGoodSpec` is kept exactly as written."""
    document: Json = STATUS.dump_python(replace(status, last_good_spec=None), mode="json", by_alias=True, exclude_none=True)
    if status.last_good_spec is not None:
        document["lastGoodSpec"] = status.last_good_spec
    return document


def dropped(sent: Any, stored: Any, path: str = "status") -> str | None:
    """The first field of what was sent that the server did not store: an older CRD drops what it does not know. None if all is there."""
    if isinstance(sent, dict):
        for key, value in sent.items():
            where = f"{path}.{key}"
            if not isinstance(stored, dict) or key not in stored:
                return where
            if found := dropped(value, stored[key], where):
                return found
    if isinstance(sent, list) and isinstance(stored, list):
        pairs = enumerate(zip(sent, stored, strict=False))
        return next((found for at, (one, other) in pairs if (found := dropped(one, other, f"{path}[{at}]"))), None)
    return None


def load_report(text: str | None) -> Report | None:
    """The driver's report; None when there is none, it cannot be read, or no driver could mean it. What a newer driver adds is passed over.

    Any account that may annotate the pod may write one, so what becomes part of the status is bounded.
    """
    if text is None or len(text) > TEXT:
        return None
    try:
        raw = orjson.loads(text)
        known = {key: value for key, value in raw.items() if value is not None} | {"deadline": moment(raw.get("deadline"))}
        return _bounded(_REPORT.validate_python(known))
    except (ValueError, AttributeError, OverflowError):
        return None


def _bounded(report: Report) -> Report | None:
    numbers = (value for value in (getattr(report, item.name) for item in fields(report)) if isinstance(value, int))
    if any(abs(value) >= MOST for value in numbers):
        return None
    rate = report.records_per_second
    return replace(
        report,
        phase=printable(report.phase[:WORD]),
        records_per_second=rate if rate is not None and math.isfinite(rate) else None,
        draining=tuple(_drain(drain) for drain in report.draining[:DRAINS]),
        warnings=tuple(printable(text[:WORDS]) for text in report.warnings[:WARNINGS]),
    )


def _drain(drain: DrainStatus) -> DrainStatus:
    return replace(drain, pod=printable(drain.pod[:NAME]), since=_sound(drain.since), deadline=_sound(drain.deadline))


def _sound(time: datetime | None) -> datetime | None:
    return None if time is None else moment(time.isoformat())
