"""From a record's bytes to the rows of its JSON documents: one document a record, or one a line (docs/sinks.md, "JSON documents").

`from_json` ends at the first complete value, whatever follows it. So each text is parsed in an envelope that has to close behind it:
`{"<nonce>": {"d": <text>, "<nonce>": null}}`. The inner object is read as a map, which shows every name in it. The names are `d` and the nonce
only if the text is exactly one value. The nonce is random, so no text can close the envelope and open another.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import MapType, StringType, StructField, StructType

from sluice_checkpoints.errors import Refused
from sluice_consumer.columns import readable
from sluice_consumer.sinks.json.values import forms, unfit, unreadable
from sluice_consumer.sinks.options import INDEX

CORRUPT = "_corrupt_record"
NONCE = secrets.token_hex(16)
KEY = "d"
# RFC 8259: what Spark takes beside it would differ from any other reader of the stream.
LENIENT = (
    "Comments",
    "UnquotedFieldNames",
    "SingleQuotes",
    "NumericLeadingZeros",
    "NonNumericNumbers",
    "BackslashEscapingAnyCharacter",
    "UnquotedControlChars",
)
STRICT = {f"allow{name}": "false" for name in LENIENT} | {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
BLANKS = " \t\r"
SIDE_BY_SIDE = rf"(?<=\}})[{BLANKS}]*(?=\{{)"
UNIT, DOCUMENT = "sluice_unit", "sluice_document"  # columns on the way
POSITION = ("shardId", "sequenceNumber", "subSequenceNumber")


def json_rows(batch: DataFrame, schema: str, keep: Sequence[str] = (), *, lines: bool = False) -> DataFrame:
    """A row for each JSON document of a batch, or of a stream that `sluice_consumer.streaming` reads.

    A record holds exactly one document. One that does not, or whose document does not fit the schema, fails whatever reads the rows. If the
    schema has the column `_corrupt_record STRING`, it becomes a row instead: the whole record is in that column, and the others are NULL.

    Args:
        batch: with the column `data`.
        schema: the documents' columns as DDL, as in "id BIGINT, name STRING".
        keep: columns of the batch to add to the document's. With `lines` also `documentIndex`, the document's index in its record from 0, and not
            `data`: a row is a part of its record then, and `info.reject` takes records.
        lines: a record holds any number of documents, one per line or side by side. What is said of a record above then holds for a line.

    Returns:
        The columns of the schema in its order, then those of `keep`.

    Raises:
        Refused: the schema is no DDL, or a name in it or in `keep` cannot be had.
    """
    if lines and "data" in keep:
        raise Refused(
            "keep: data cannot be kept with lines=True, because a row is a part of its record. Keep shardId, sequenceNumber and subSequenceNumber, "
            'and find the record in the batch (docs/dead-letters.md, "Records of several rows")'
        )
    return decoded(batch, schema_of(batch.sparkSession, schema, "schema"), keep, lines=lines, where="")


def decoded(batch: DataFrame, schema: StructType, keep: Sequence[str], *, lines: bool, where: str = "pipeline.args.") -> DataFrame:
    """As `json_rows`.

    Raises:
        Refused: a column is not there, or is there twice; `where` stands before the argument's name.
    """
    known = [*batch.columns, *([INDEX] if lines else [])]
    if unknown := [name for name in keep if name not in known]:
        raise Refused(f"{where}keep: the batch has no column {unknown[0]}; it has {', '.join(known)}")
    refuse_twice([*schema.fieldNames(), *dict.fromkeys(keep)], f"{where}schema, {where}keep")
    carried = [name for name in dict.fromkeys([*keep, *(name for name in POSITION if name in known)]) if name != INDEX]
    units = (_of_lines if lines else _of_records)(batch, _fields(schema), carried)
    return _rows(units, schema, list(dict.fromkeys(keep)))


def refuse_twice(names: Sequence[str], where: str) -> None:
    """Spark compares names of columns without case.

    Raises:
        Refused: a name stands there twice.
    """
    lower = [name.lower() for name in names]
    if twice := [name for name in names if lower.count(name.lower()) > 1]:
        raise Refused(
            f"{where}: column {' and column '.join(dict.fromkeys(twice))} would be one column; leave one out, or rename it in a process of your own"
        )


def schema_of(spark: SparkSession, ddl: str, field: str = "pipeline.args.schema") -> StructType:
    """The columns of JSON documents.

    Raises:
        Refused: Spark does not understand the DDL, a type cannot be read from JSON, or two columns have one name.
    """
    try:
        schema = spark.createDataFrame([], ddl).schema
        spark.createDataFrame([], "data STRING").select(_parsed(f.col("data"), _fields(schema)))
    except Exception as error:
        raise Refused(f"{field}: {ddl!r} is not a list of columns: {str(error).splitlines()[0]}") from error
    if unread := unreadable(schema):
        raise Refused(f"{field}: {unread[0]} is of a type that Spark cannot read from JSON; make it a STRING, and cast it in pipeline.args.transform")
    refuse_twice(schema.fieldNames(), field)
    if CORRUPT in schema.fieldNames() and schema[CORRUPT].dataType != StringType():
        raise Refused(f"{field}: {CORRUPT} is a {schema[CORRUPT].dataType.simpleString()}; make it a STRING")
    return schema


def _fields(schema: StructType) -> StructType:
    return StructType([field for field in schema if field.name != CORRUPT])


def _parsed(text: Column, fields: StructType) -> Column:
    envelope = StructType([StructField(NONCE, MapType(StringType(), fields)), StructField(CORRUPT, StringType())])
    return f.from_json(f.concat(f.lit(f'{{"{NONCE}":{{"{KEY}":'), text, f.lit(f',"{NONCE}":null}}}}')), envelope, STRICT)


def _document(parsed: Column) -> Column:
    return f.map_values(parsed[NONCE])[0]


def _fits(unit: Column, fields: StructType) -> Column:
    """Whether the text is exactly one document, and each of its values is what its column says."""
    parsed = unit["parsed"]
    is_document = parsed[CORRUPT].isNull() & (f.map_keys(parsed[NONCE]) == f.array(f.lit(KEY), f.lit(NONCE))) & _document(parsed).isNotNull()
    written = _document(unit["said"]) if forms(fields) else parsed
    return f.coalesce(is_document & ~unfit(_document(parsed), written, fields), f.lit(False))  # noqa: FBT003 - a literal


def _unit(text: Column, fields: StructType) -> Column:
    """A text, read as the columns are, and as texts where their form is asked."""
    read = {"parsed": fields, "said": forms(fields)}
    parsed = [f.when(f.is_valid_utf8(text), _parsed(text, kind)).alias(name) for name, kind in read.items() if isinstance(kind, StructType)]
    return f.struct(text.alias("text"), *parsed)


def _of_records(batch: DataFrame, fields: StructType, carried: Sequence[str]) -> DataFrame:
    return batch.select(_unit(f.col("data").cast("string"), fields).alias(UNIT), *carried)


def _of_lines(batch: DataFrame, fields: StructType, carried: Sequence[str]) -> DataFrame:
    lines = batch.select(f.transform(_lines(), lambda line: _unit(line, fields)).alias(UNIT), *carried)
    told_apart = f.flatten(f.transform(UNIT, lambda unit: _side_by_side(unit, fields)))
    return lines.select(f.posexplode(told_apart).alias(INDEX, UNIT), *carried)


def _lines() -> Column:
    """The lines of a record that are not blank. Spark splits text only: other bytes are split as Latin-1, in which each byte is a character."""
    text = f.col("data").cast("string")
    of_bytes = f.transform(f.split(f.decode("data", "ISO-8859-1"), "\n"), lambda line: f.encode(line, "ISO-8859-1").cast("string"))
    every = f.when(f.is_valid_utf8(text), f.split(text, "\n")).otherwise(of_bytes)
    return f.filter(every, lambda line: f.btrim(line, f.lit(BLANKS)) != "")


def _side_by_side(unit: Column, fields: StructType) -> Column:
    """The documents of a line.

    A JSON object ends at its own brace, so a text is a sequence of objects in one way at most: if all parts are objects, they are the documents.
    """
    parts = f.transform(f.split(unit["text"], SIDE_BY_SIDE), lambda text: _unit(text, fields))
    judged = f.transform(f.array(parts), lambda units: f.when(f.forall(units, lambda each: _fits(each, fields)), units).otherwise(f.array(unit)))
    several = f.is_valid_utf8(unit["text"]) & unit["text"].rlike(SIDE_BY_SIDE)
    return f.when(_fits(unit, fields), f.array(unit)).when(several, judged[0]).otherwise(f.array(unit))


def _rows(units: DataFrame, schema: StructType, keep: Sequence[str]) -> DataFrame:
    fits = _fits(f.col(UNIT), _fields(schema))
    document = f.when(fits, _document(f.col(UNIT)["parsed"]))
    if CORRUPT not in schema.fieldNames():
        document = document.otherwise(_failing(_message(units.columns)))
    corrupt = f.when(~fits, f.expr(readable(f"{UNIT}.text"))).alias(CORRUPT)
    rows = units.select(document.alias(DOCUMENT), corrupt, *keep)
    return rows.select(*(f.col(name) if name == CORRUPT else f.col(DOCUMENT)[name].alias(name) for name in schema.fieldNames()), *keep)


def _failing(message: Column) -> Column:
    """Fails with Spark's own condition for a malformed record, MALFORMED_RECORD_IN_PARSING, whose SQLSTATE says that a value is wrong.

    `raise_error` has one condition for whatever a user raises. `parse_json` says what it was given if that is no JSON, and these words are none.
    """
    return f.raise_error(f.to_json(f.parse_json(message)))


def _message(known: Sequence[str]) -> Column:
    """What fails the batch. The record's own words stay out of it: they are the user's, and might look like a cause."""
    place = [f.concat(f.lit(f"{name} "), f.col(name).cast("string")) for name in (*POSITION, INDEX) if name in known]
    where = f.concat(f.concat_ws(", ", *place), f.lit(": ")) if place else f.lit("")
    fault = f.when(f.is_valid_utf8(f.col(UNIT)["text"]), "it is not exactly one JSON document that fits the schema").otherwise("it is not UTF-8")
    several = "" if INDEX in known else ". Records of several documents need decode: json-lines"
    remedy = f"; correct the schema or the producer, or add {CORRUPT} STRING to the schema, which keeps such records{several}"
    return f.concat(f.lit("MALFORMED_RECORD: "), where, fault, f.lit(remedy))
