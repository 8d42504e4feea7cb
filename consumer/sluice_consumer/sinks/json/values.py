"""Values that Spark would take and that are not what their column says, and types that it cannot read (docs/sinks.md, "JSON documents").

Of a text for a date, a time or a decimal Spark reads more than it says: a year out of `20240101`, today's date out of `12:00`.
So these are read twice: as their type, and as text (`forms`), whose form is asked.
"""

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
    DecimalType,
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


DATE = r"(?!0000)\d{4}-\d{1,2}-\d{1,2}"
FORM = {
    DateType: rf"^{DATE}\z",
    TimestampType: rf"^{DATE}(?!\d)",  # the rest is Spark's to check
    TimestampNTZType: rf"^{DATE}(?!\d)",
    DecimalType: r"^-?\d+(\.\d+)?([eE][-+]?\d+)?\z",
}


def forms(kind: DataType) -> DataType | None:
    """The type in which the texts of a value are read whose form is asked; None: there are none."""
    match kind:
        case StructType():
            asked = [StructField(field.name, of) for field in kind.fields if (of := forms(field.dataType))]
            return StructType(asked) if asked else None
        case ArrayType():
            return ArrayType(of) if (of := forms(kind.elementType)) else None
        case MapType():
            return MapType(kind.keyType, of) if (of := forms(kind.valueType)) else None
        case _:
            return StringType() if type(kind) in FORM else None


def unfit(value: Column, text: Column, kind: DataType) -> Column:
    """Whether a value, or one within it, is not what the document says. Never NULL; of NULL it is false.

    Args:
        value: as `kind`.
        text: the same as `forms(kind)`, if that is a type.
        kind: the column's type.
    """
    return f.coalesce(_asked(value, text, kind), f.lit(False)) if _can_be(kind) else f.lit(False)  # noqa: FBT003 - literals


def _can_be(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(not field.nullable or _can_be(field.dataType) for field in kind.fields)
        case ArrayType():
            return _can_be(kind.elementType)
        case _:
            return isinstance(kind, MapType | DoubleType | FloatType) or type(kind) in FORM


def _asked(value: Column, text: Column, kind: DataType) -> Column:
    match kind:
        case StructType():
            return reduce(or_, (_of_field(value, text, field) for field in kind.fields if not field.nullable or _can_be(field.dataType)))
        case ArrayType():
            return _of_elements(value, text, kind)
        case MapType():
            twice = f.size(f.array_distinct(f.map_keys(value))) < f.size(value)
            texts = f.map_values(text) if forms(kind) else text
            return twice | unfit(f.map_values(value), texts, ArrayType(kind.valueType))
        case DoubleType() | FloatType():
            return f.abs(value) == INFINITE  # 1e400: `Infinity` itself is no JSON
        case TimestampType():
            return _of_time(value, text)
        case _:
            return ~text.rlike(FORM[type(kind)])


def _of_time(value: Column, text: Column) -> Column:
    """A number is seconds: milliseconds lead beyond the year 9999. The text of four digits is a year, and no number."""
    seconds = f.unix_seconds(value)
    number = f.coalesce(text.try_cast("bigint") == seconds, f.lit(False))  # noqa: FBT003 - a literal
    return ~seconds.between(EARLIEST, LATEST) | ~(number | text.rlike(FORM[TimestampType]))


def _of_elements(value: Column, text: Column, kind: ArrayType) -> Column:
    if forms(kind) is None:
        return f.exists(value, lambda each: unfit(each, text, kind.elementType))
    return f.exists(f.zip_with(value, text, lambda each, written: unfit(each, written, kind.elementType) & each.isNotNull()), lambda wrong: wrong)


def _of_field(value: Column, text: Column, field: StructField) -> Column:
    missing = value.isNotNull() & value[field.name].isNull()
    inner = unfit(value[field.name], text[field.name] if forms(field.dataType) else text, field.dataType)
    return inner if field.nullable else missing | inner
