"""JSON to values and back: `.status`, and the driver's report."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from sluice_operator.names import printable
from sluice_operator.state.objects import Report
from sluice_operator.state.status import DrainStatus, Status

STATUS = TypeAdapter(Status)
_REPORT = TypeAdapter(Report)
TEXT = 131_072  # characters of a report: half of what all annotations of a pod may have
MOST = 2**53  # of a number
WORD, WORDS, NAME = 64, 1024, 253  # characters of a word, of a warning, and of a pod's name
DRAINS, WARNINGS = 1000, 16

Json = dict[str, Any]


def load_status(raw: Json | None) -> Status:
    """The status as stored; a new resource has none.

    Raises:
        ValueError: the status has content that the operator never writes.
    """
    return STATUS.validate_python(raw or {})


def dump_status(status: Status) -> Json:
    """JSON for the API server, without what is None; `lastGoodSpec` is kept to the letter."""
    document: Json = STATUS.dump_python(status, mode="json", by_alias=True, exclude_none=True)
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
        known = {key: value for key, value in raw.items() if value is not None}
        return _bounded(_REPORT.validate_python(known))
    except (ValueError, AttributeError, ValidationError, OverflowError):
        return None


def _bounded(report: Report) -> Report | None:
    numbers = (value for value in (getattr(report, item.name) for item in fields(report)) if isinstance(value, int))
    if any(abs(value) >= MOST for value in numbers):
        return None
    rate = report.records_per_second
    return replace(
        report,
        phase=printable(report.phase[:WORD]),
        deadline=report.deadline and report.deadline[:WORD],
        records_per_second=rate if rate is not None and math.isfinite(rate) else None,
        draining=tuple(_drain(drain) for drain in report.draining[:DRAINS]),
        warnings=tuple(printable(text[:WORDS]) for text in report.warnings[:WARNINGS]),
    )


def _drain(drain: DrainStatus) -> DrainStatus:
    return replace(drain, pod=printable(drain.pod[:NAME]), since=_zoned(drain.since), deadline=_zoned(drain.deadline))


def _zoned(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
