"""JSON to values and back: `.status`, and the driver's report."""

from __future__ import annotations

from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from sluice_operator.model import Report, Status

STATUS = TypeAdapter(Status)
_REPORT = TypeAdapter(Report)

Json = dict[str, Any]


def load_status(raw: Json | None) -> Status:
    """The status as stored; a new resource has none.

    Raises:
        ValueError: somebody else wrote into it what the operator never writes.
    """
    return STATUS.validate_python(raw or {})


def dump_status(status: Status) -> Json:
    """JSON for the API server, without what is None; `lastGoodSpec` is kept to the letter."""
    document: Json = STATUS.dump_python(status, mode="json", by_alias=True, exclude_none=True)
    if status.last_good_spec is not None:
        document["lastGoodSpec"] = status.last_good_spec
    return document


def load_report(text: str | None) -> Report | None:
    """The driver's report; None when there is none or it cannot be read. What a newer driver adds is passed over."""
    try:
        raw = orjson.loads(text or "null")
        known = {key: value for key, value in raw.items() if value is not None}
        return _REPORT.validate_python(known)
    except (ValueError, AttributeError, ValidationError):
        return None
