"""Values that Spark would take and that are not what their column says, and types that it cannot read (docs/sinks.md, "JSON documents")."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    CalendarIntervalType,
    CharType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DoubleType,
    FloatType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

EARLIEST, LATEST = -62135683200, 253402387200  # seconds: a day before the year 1, a day after the year 9999
INFINITE = float("inf")
READ = (
    BinaryType,
    BooleanType,
    CalendarIntervalType,
    CharType,
    DateType,
    DayTimeIntervalType,
    NullType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)
"""What `from_json` reads; another type passes its analysis, and fails at the first row."""


def unreadable(schema: StructType) -> list[str]:
    """Columns of types that are not read from JSON, by the innermost name."""
    return [name for name, kind in _kinds("", schema) if not isinstance(kind, READ)]


def _kinds(name: str, kind: DataType) -> Iterator[tuple[str, DataType]]:
    """Types that hold no other, each with the name of the innermost column that has it."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield from _kinds(field.name, field.dataType)
        case ArrayType():
            yield from _kinds(name, kind.elementType)
        case MapType():
            yield from _kinds(name, kind.keyType)
            yield from _kinds(name, kind.valueType)
        case _:
            yield name, kind


def unfit(value: Column, kind: DataType) -> Column:
    """Whether a value, or one within it, is not what the document says. Never NULL; of NULL it is false."""
    return f.coalesce(_asked(value, kind), f.lit(False)) if _can_be(kind) else f.lit(False)  # noqa: FBT003 - literals


def _can_be(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(not field.nullable or _can_be(field.dataType) for field in kind.fields)
        case ArrayType():
            return _can_be(kind.elementType)
        case _:
            return isinstance(kind, MapType | DoubleType | FloatType | TimestampType)


def _asked(value: Column, kind: DataType) -> Column:
    match kind:
        case StructType():
            return reduce(or_, (_of_field(value, field) for field in kind.fields if not field.nullable or _can_be(field.dataType)))
        case ArrayType():
            return f.exists(value, lambda each: unfit(each, kind.elementType))
        case MapType():
            twice = f.size(f.array_distinct(f.map_keys(value))) < f.size(value)
            return twice | unfit(f.map_values(value), ArrayType(kind.valueType))
        case TimestampType():
            return ~f.unix_seconds(value).between(EARLIEST, LATEST)  # a number is seconds: milliseconds lead beyond the year 9999
        case _:
            return f.abs(value) == INFINITE  # 1e400: `Infinity` itself is no JSON


def _of_field(value: Column, field: StructField) -> Column:
    missing = value.isNotNull() & value[field.name].isNull()
    inner = unfit(value[field.name], field.dataType)
    return inner if field.nullable else missing | inner
