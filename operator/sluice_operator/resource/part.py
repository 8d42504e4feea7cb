"""What the models of the spec are made of: their base, and types of fields that more than one of them has. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sluice_operator.names import camel
from sluice_operator.resource.quantities import FORM, LONGEST, quantity
from sluice_operator.untrusted.values import moment


def zoned(text: str) -> str:
    """The time, if it has a zone and a year that one may reckon with.

    Raises:
        ValueError: it has not.
    """
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("needs a time zone, such as 2026-01-31T00:00:00Z")
    if moment(text) is None:
        raise ValueError("is not between the years 2000 and 2200")
    return text


def _quantity(value: str | int) -> str | int:
    quantity(value)
    return value


Seconds = Annotated[int, Field(ge=1, le=86_400)]
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"}), AfterValidator(zoned)]
Account = Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]
PoolName = Annotated[str, Field(max_length=45, pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$")]
Table = Annotated[str, Field(min_length=3, max_length=255, pattern=r"^[a-zA-Z0-9_.-]+$")]
AttributeName = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^\S.*$")]
RowKey = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^\S.*$")]
ShardPlace = Annotated[str, Field(max_length=151, pattern=r"^shardId-[0-9]{12}=(trim-horizon|END|0|[1-9][0-9]{0,128})$")]
Url = Annotated[str, Field(max_length=512, pattern=r"^https?://[^\s/]+\S*$")]
Quantity = Annotated[
    str | int,
    Field(json_schema_extra={"x-kubernetes-int-or-string": True, "pattern": FORM, "maxLength": LONGEST, "minimum": 0}, union_mode="left_to_right"),
    AfterValidator(_quantity),
]


class SpecPart(BaseModel):
    """Base of the models: camelCase on the wire, frozen, unknown fields refused, `"5"` is not 5."""

    model_config = ConfigDict(
        alias_generator=camel,
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
    )

    def document(self) -> dict[str, Any]:
        """JSON with names as on the wire, defaults filled in, without nulls."""
        return self.model_dump(by_alias=True, exclude_none=True)
