"""`decode: json` and `json-lines`: what a record that is not exactly one document becomes, and that nothing of it is dropped in silence."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import json_payloads
import pytest
from conftest_sinks import ARRIVAL
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice_checkpoints.errors import Refused
from sluice_consumer.columns import DDL
from sluice_consumer.poison.search import DATA, UNKNOWN
from sluice_consumer.sinks import json_rows, options, rows
from sluice_consumer.spark.failures import judged

pytestmark = pytest.mark.spark
AGGREGATE = b"\xf3\x89\x9a\xc2" + b'\n\x01k\x1a\x0a\x08\x00\x1a\x06{"a":1}' + bytes(16)
Read = Callable[..., list[dict[str, Any]]]


def batch_of(spark: SparkSession, payloads: Sequence[bytes]) -> DataFrame:
    made = [("k", bytearray(data), "orders", "shardId-0", str(n), 0, ARRIVAL) for n, data in enumerate(payloads)]
    return spark.createDataFrame(made, DDL)


@pytest.fixture
def read(spark: SparkSession) -> Read:
    def decode(payloads: Sequence[bytes], schema: str, how: str = "json", **args: Any) -> list[dict[str, Any]]:
        asked = options.rows({"decode": how, "schema": schema, **args})
        return [row.asDict(recursive=True) for row in rows.rows(batch_of(spark, payloads), asked).collect()]

    return decode


def lossless(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    return text if text is not None and not text.startswith("base64:") else "base64:" + base64.b64encode(data).decode()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize(
    ("arrival", "day", "hour"),
    [
        ("2026-03-01T03:30", "2026-03-01", "2026-03-01-03"),
        ("2026-11-01T05:30", "2026-11-01", "2026-11-01-05"),  # half past one in New York, and an hour later again
        ("2026-11-01T06:30", "2026-11-01", "2026-11-01-06"),
    ],
)
def test_a_partition_is_utcs_in_a_session_of_any_zone(
    spark: SparkSession, request: pytest.FixtureRequest, zone: str, arrival: str, day: str, hour: str
) -> None:
    """A table has one kind of days, whoever writes to it."""
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    request.addfinalizer(lambda: spark.conf.set("spark.sql.session.timeZone", before))
    spark.conf.set("spark.sql.session.timeZone", zone)
    made = spark.createDataFrame([("k", bytearray(b"{}"), "orders", "s", "1", 0, datetime.fromisoformat(f"{arrival}+00:00"))], DDL)
    found = {unit: rows.rows(made, options.rows({"partition": unit})).collect()[0][f"arrival_{unit}"] for unit in ("day", "hour")}
    assert found == {"day": day, "hour": hour}


NOT_ONE = {
    "two lines": b'{"id":1}\n{"id":2}\n',
    "side by side": b'{"id":1}{"id":2}',
    "a comma between": b'{"id":1},{"id":2}',
    "trailing text": b'{"id":1} x',
    "trailing brace": b'{"id":1}}',
    "trailing zero byte": b'{"id":1}\x00',
    "cut": b'{"id":1',
    "cut in a string": b'{"id":1,"name":"x',
    "nothing": b"",
    "blanks": b" \t\r\n",
    "null": b"null",
    "an array": b'[{"id":1}]',
    "an empty array": b"[]",
    "a number": b"7",
    "a text": b'"id"',
    "no JSON": b"id=1",
    "a comment": b'{"id":1}//x',
    "a comment within": b'{"id":/*x*/1}',
    "an open comment": b'{"id":1}/*',
    "single quotes": b"{'id':1}",
    "a name without quotes": b"{id:1}",
    "NaN": b'{"id":1,"x":NaN}',
    "Infinity": b'{"id":1,"x":-Infinity}',
    "NaN as a text": b'{"id":1,"x":"NaN"}',
    "a leading zero": b'{"id":01}',
    "a trailing comma": b'{"id":1,}',
    "a line end in a string": b'{"id":1,"name":"a\nb"}',
    "a byte order mark": b'\xef\xbb\xbf{"id":1}',
    "Latin-1": b'{"id":1,"name":"caf\xe9"}',
    "a surrogate in UTF-8": b'{"id":1,"name":"\xed\xa0\x80"}',
    "UTF-16": '{"id":1}'.encode("utf-16"),
    "UTF-16 without a mark": '{"id":1}'.encode("utf-16-le"),
    "gzip": gzip.compress(b'{"id":1}' * 50),
    "a raw aggregate": AGGREGATE,
    "what looks like base64": b"base64:eyJpZCI6MX0=",
    "a member behind": b'{"id":1},"x":[2]',
    "the envelope's name again": b'{"id":1},"d":{"id":2}',
    "an envelope closed and opened": b'{"id":1}},"d":{"d":{"id":2}',
    "an array closed and opened": b'1],"x":[2',
    "another type": b'{"id":"seven"}',
    "a type within": b'{"id":1,"items":[{"n":1},{"n":"x"}]}',
    "a number that is too large": b'{"id":9223372036854775808}',
    "a day that is none": b'{"id":1,"at":"2026-02-30T00:00:00Z"}',
    "more nesting than 1000": b'{"id":1,"deep":' + b"[" * 1000 + b"]" * 1000 + b"}",
    "a number of 1001 digits": b'{"id":1,"long":' + b"1" * 1001 + b"}",
    "a name of more than 50000 characters": b'{"id":1,"' + b"n" * 50_001 + b'":1}',
}
COLUMNS = "id BIGINT, name STRING, x DOUBLE, at TIMESTAMP, items ARRAY<STRUCT<n: INT>>, of MAP<STRING, INT>"


def test_what_is_not_one_document_is_kept_whole_beside_the_good_ones(read: Read) -> None:
    good = b' {"id":1,"name":"a"}\r\n'
    found = read([good, *NOT_ONE.values(), good], f"{COLUMNS}, _corrupt_record STRING", keep=["sequenceNumber"])
    nothing = {"id": None, "name": None, "x": None, "at": None, "items": None, "of": None}
    ours = nothing | {"id": 1, "name": "a", "_corrupt_record": None}
    expected = [nothing | {"_corrupt_record": lossless(data), "sequenceNumber": str(n)} for n, data in enumerate(NOT_ONE.values(), 1)]
    assert dict(zip(NOT_ONE, found[1:-1], strict=True)) == dict(zip(NOT_ONE, expected, strict=True))
    assert [found[0], found[-1]] == [ours | {"sequenceNumber": "0"}, ours | {"sequenceNumber": str(len(NOT_ONE) + 1)}]


@pytest.mark.parametrize("name", ["two lines", "nothing", "null", "gzip", "another type"])
def test_what_is_not_one_document_fails_its_batch_and_names_the_record(read: Read, name: str) -> None:
    with pytest.raises(Exception, match="MALFORMED_RECORD: shardId shardId-0, sequenceNumber 1, subSequenceNumber 0: it is not") as failed:
        read([b'{"id":1}', NOT_ONE[name]], COLUMNS)
    assert "add _corrupt_record STRING to the schema" in str(failed.value)
    assert ("not UTF-8" in str(failed.value)) == (name == "gzip")


def test_a_bad_document_counts_as_a_failure_of_data(spark: SparkSession, read: Read) -> None:
    """By Spark's own condition for it, not by its words: what a user raises in the same words is of an unknown class."""
    with pytest.raises(Exception, match="MALFORMED_RECORD: ") as failed:
        read([b"nonsense"], "id BIGINT")
    with pytest.raises(Exception, match="MALFORMED_RECORD: ") as of_user:
        spark.range(1).select(f.raise_error(f.concat(f.lit("MALFORMED_RECORD: "), f.col("id").cast("string")))).collect()
    found = [judged(each.value) for each in (failed, of_user)]
    assert [each and (each.kind, each.transient) for each in found] == [(DATA, False), (UNKNOWN, False)]


UNREAD = ["v TIME", "v ARRAY<TIME>", "v MAP<STRING, TIME>", "s STRUCT<v: TIME>"]


@pytest.mark.parametrize("schema", UNREAD)
def test_a_type_that_json_cannot_have_is_refused_before_the_first_batch(spark: SparkSession, schema: str) -> None:
    """Spark's analysis takes it, and the first row fails. A line of Spark without the type does not know it either."""
    with pytest.raises(Refused, match=r"^pipeline\.args\.schema: (v is of a type that Spark cannot read from JSON; make it a STRING|.* no list of)"):
        rows.check(spark, options.rows({"decode": "json", "schema": schema}))


ONE = {
    "no column of it": (b"{}", {}),
    "names in another case": (b'{"ID":1}', {}),
    "null for a column": (b'{"id":null}', {}),
    "a name twice: the last one": (b'{"id":1,"id":2}', {"id": 2}),
    "its own _corrupt_record": (b'{"id":1,"_corrupt_record":"x"}', {"id": 1}),
    "escapes": (b'{"name":"\\u00e9\\"}{\\n"}', {"name": 'é"}{\n'}),
    "a half of a surrogate pair": (b'{"name":"\\ud800"}', {"name": "?"}),
    "an object for a text": (b'{"name":{"a": [1]}}', {"name": '{"a":[1]}'}),
    "a number for a text": (b'{"name":1.10}', {"name": "1.1"}),
    "seconds for a time": (b'{"at":1700000000}', {"at": datetime.fromtimestamp(1_700_000_000, UTC).replace(tzinfo=None)}),
    "the nesting of 900": (b'{"id":1,"deep":' + b"[" * 900 + b"]" * 900 + b"}", {"id": 1}),
    "a megabyte": (b'{"name":"' + b"x" * 1_000_000 + b'"}', {"name": "x" * 1_000_000}),
}


def test_one_document_is_one_row(read: Read) -> None:
    """What a column says of values that are written in another way, as docs/sinks.md has it."""
    found = read([data for data, _ in ONE.values()], f"{COLUMNS}, _corrupt_record STRING")
    for (name, (_, expected)), row in zip(ONE.items(), found, strict=True):
        assert {key: value for key, value in row.items() if value is not None} == expected, name


CHANGED = {
    "infinite": b'{"x":1e400}',
    "infinite as a float": b'{"f":-1e39}',
    "infinite within": b'{"within":[{"y":{"a":1.0}},{"y":{"b":1e400}}]}',
    "milliseconds": b'{"at":1700000000000}',
    "milliseconds before 1970": b'{"at":-1700000000000}',
    "a key twice": b'{"within":[{"y":{"a":1,"a":2}}]}',
    "null where the schema says NOT NULL": b'{"s":{"y":null}}',
    "nothing where the schema says NOT NULL": b'{"s":{}}',
}


def test_a_value_that_would_be_another_one_does_not_fit(read: Read) -> None:
    """Spark takes each of them."""
    schema = "x DOUBLE, f FLOAT, at TIMESTAMP, within ARRAY<STRUCT<y: MAP<STRING, DOUBLE>>>, s STRUCT<y: INT NOT NULL>, _corrupt_record STRING"
    good = b'{"x":1e300,"f":1.5,"at":1,"within":[{"y":{"a":1}},null,{"y":null},{"y":{"a":null}}],"s":{"y":1}}'
    found = read([*CHANGED.values(), good, b'{"s":null,"within":null}'], schema)
    for (name, data), row in zip([*CHANGED.items(), ("good", None), ("NULL", None)], found, strict=True):
        assert row["_corrupt_record"] == (data and data.decode()), name
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        read([b"{}"], "x STRING NOT NULL")


FORMS = {
    "DATE": (
        [
            '"20240101"',
            '"99999999"',
            '"2024"',
            '"2024-01"',
            '"2024-01-01 garbage"',
            '"2024-01-01T99:99:99Z"',
            '"+20000-01-01"',
            '"0000-01-01"',
            '"now"',
        ],
        ['"2024-01-01"', '"0001-01-01"', '"9999-12-31"', "null"],
    ),
    "TIMESTAMP": (
        ['"12:00"', '"T12:00"', '"2024"', '"2024-01"', '"+20000-01-01T00:00:00Z"', '"now"'],
        ['"2024-01-01T12:00:00.123Z"', '"2024-01-01 12:00:00+02:00"', '"2024-01-01"', "1700000000", "2024", "0", "-5", "null"],
    ),
    "TIMESTAMP_NTZ": (['"12:00"', '"2024"', '"+20000-01-01T00:00:00"'], ['"2024-01-01T12:00:00"', '"9999-12-31T23:59:59"', "null"]),
    "DECIMAL(10, 2)": (['"19,99"', '"1.000,50"', '"1,000.50"', '"1,000"', '""'], ['"19.99"', "19.99", "-7", '"7"', "1e3", "null"]),
}


def test_a_text_is_taken_only_in_the_form_of_its_column(read: Read) -> None:
    """Spark reads years, thousands and today's date out of others. Within arrays, maps and objects, too."""
    within = {"{}": "{}", "ARRAY<{}>": "[{}]", "MAP<STRING, {}>": '{{"k":{}}}', "STRUCT<y: {}>": '{{"y":{}}}', "ARRAY<STRUCT<y: {}>>": '[{{"y":{}}}]'}
    columns, payloads, wanted = [], [], []
    for n, (kind, value) in enumerate((kind, value) for kind in FORMS for value in within.items()):
        columns.append(f"c{n} {value[0].format(kind)}")
        for good, texts in enumerate(FORMS[kind]):
            payloads += [f'{{"c{n}":{value[1].format(text)}}}'.encode() for text in texts]
            wanted += [bool(good)] * len(texts)
    found = read(payloads, ", ".join([*columns, "_corrupt_record STRING"]))
    taken = [row["_corrupt_record"] is None for row in found]
    assert [data for data, good, want in zip(payloads, taken, wanted, strict=True) if good != want] == []


def test_a_decimal_is_rounded_to_its_scale_and_the_ends_of_the_calendar_are_times(read: Read) -> None:
    found = read([b'{"x":19.999}', b'{"x":-0.005}', b'{"x":123456789}'], "x DECIMAL(10, 2), _corrupt_record STRING")
    assert [str(row["x"]) for row in found] == ["20.00", "-0.01", "None"]
    times = read([b'{"x":"9999-12-31T23:59:59Z"}', b'{"x":"0001-01-02T00:00:00Z"}'], "x TIMESTAMP, _corrupt_record STRING")
    assert [row["_corrupt_record"] for row in times] == [None, None]


@settings(max_examples=3, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_exactly_one_object_is_what_pythons_parser_takes_for_one(spark: SparkSession, seed: int) -> None:
    """Of any bytes. Whatever is none is kept without loss.

    Python takes more: 1000 levels or digits, names of more than 50,000 characters (docs/sinks.md, and `NOT_ONE` above). No payload here has them.
    """
    random = Random(seed)  # noqa: S311 - payloads are no secrets
    payloads = [json_payloads.payload(random) for _ in range(400)]
    asked = options.rows({"decode": "json", "schema": "a STRING, _corrupt_record STRING"})
    found = rows.rows(batch_of(spark, payloads), asked).collect()
    for data, row in zip(payloads, found, strict=True):
        expected = json_payloads.python_reads(data)
        assert row["_corrupt_record"] == (None if expected is not None else lossless(data)), data
        if expected is not None and isinstance(expected.get("a"), str):
            assert row["a"] == expected["a"], data


def in_lines(data: bytes) -> list[tuple[int, dict[str, Any] | str]]:
    """A record of lines as the page describes it, by Python's own parser."""
    units: list[dict[str, Any] | str] = []
    for line in data.split(b"\n"):
        if line.strip(b" \t\r"):
            units += one_line(line)
    return list(enumerate(units))


def one_line(line: bytes) -> list[dict[str, Any] | str]:
    if (one := json_payloads.python_reads(line)) is not None:
        return [one]
    found: list[dict[str, Any] | str] = []
    try:
        rest = line.decode()
    except UnicodeDecodeError:
        return [lossless(line)]
    while rest.strip(" \t\r"):
        try:
            _, end = json.JSONDecoder().raw_decode(rest.lstrip(" \t\r"))
        except ValueError:
            return [lossless(line)]
        text = rest.lstrip(" \t\r")
        if (one := json_payloads.python_reads(text[:end].encode())) is None or "}{" in json.dumps(one):
            return [lossless(line)]
        found.append(one)
        rest = text[end:]
    return found


@settings(max_examples=3, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_lines_are_what_pythons_parser_takes_for_them(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - payloads are no secrets
    payloads = [
        b"".join(json_payloads.payload(random) + random.choice([b"\n", b"\n", b"\r\n", b"", b" "]) for _ in range(random.randrange(4)))
        for _ in range(200)
    ]
    read = json_rows(batch_of(spark, payloads), "a STRING, _corrupt_record STRING", ["sequenceNumber", "documentIndex"], lines=True).collect()
    for n, data in enumerate(payloads):
        found = [row for row in read if row["sequenceNumber"] == str(n)]
        expected = in_lines(data)
        assert [row["documentIndex"] for row in found] == [index for index, _ in expected], data
        assert [row["_corrupt_record"] for row in found] == [unit if isinstance(unit, str) else None for _, unit in expected], data


LINES = {
    "one": (b'{"id":1}', [1]),
    "one a line": (b'{"id":1}\n{"id":2}\r\n{"id":3}', [1, 2, 3]),
    "blank lines": (b'\n{"id":1}\n\r\n \t\n{"id":2}\n\n', [1, 2]),
    "side by side": (b'{"id":1}{"id":2} {"id":3}', [1, 2, 3]),
    "side by side in lines": (b'{"id":1}{"id":2}\n{"id":3}', [1, 2, 3]),
    "a text that looks so": (b'{"id":1,"name":"}{"}', [1]),
    "nothing": (b"", []),
    "blanks": (b" \r\n\t", []),
    "a bad line": (b'{"id":1}\n{"id":"x"}\n{"id":3}', [1, '{"id":"x"}', 3]),
    "a bad document in a line": (b'{"id":1}{"id":"x"}\n{"id":3}', ['{"id":1}{"id":"x"}', 3]),
    "a text that looks so, and another document": (b'{"name":"}{"}{"id":2}', ['{"name":"}{"}{"id":2}']),
    "a line that is no UTF-8": (b'{"id":1}\n{"name":"\xe9"}\n{"id":3}', [1, "base64:" + base64.b64encode(b'{"name":"\xe9"}').decode(), 3]),
    "an array": (b'[{"id":1},{"id":2}]', ['[{"id":1},{"id":2}]']),
    "a comma between": (b'{"id":1},{"id":2}', ['{"id":1},{"id":2}']),
    "a document over several lines": (b'{\n"id":1}', ["{", '"id":1}']),
}


def test_each_document_of_a_record_is_a_row_with_its_place(read: Read) -> None:
    asked = {"keep": ["sequenceNumber", "documentIndex"]}
    found = read([data for data, _ in LINES.values()], "id BIGINT, name STRING, _corrupt_record STRING", "json-lines", **asked)
    for n, (name, (_, expected)) in enumerate(LINES.items()):
        mine = [row for row in found if row["sequenceNumber"] == str(n)]
        assert [row["id"] or row["_corrupt_record"] for row in mine] == expected, name
        assert [row["documentIndex"] for row in mine] == list(range(len(expected))), name


def test_a_line_that_is_no_document_fails_its_batch_and_names_its_place(read: Read) -> None:
    assert [row["id"] for row in read([b'{"id":1}\n{"id":2}'], "id BIGINT", "json-lines")] == [1, 2]
    with pytest.raises(Exception, match="sequenceNumber 0, subSequenceNumber 0, documentIndex 1: it is not exactly one JSON document"):
        read([b'{"id":1}\n{"id":'], "id BIGINT", "json-lines")


COLLIDING: list[tuple[dict[str, Any], str]] = [
    ({"schema": "approximateArrivalTimestamp STRING, id INT"}, "approximateArrivalTimestamp is a column that the sink adds or needs itself"),
    ({"schema": "ApproximateArrivalTimestamp STRING", "keep": ["approximateArrivalTimestamp"]}, "ApproximateArrivalTimestamp"),
    ({"schema": "arrival_day STRING, id INT", "partition": "day"}, "arrival_day is a column that the sink adds"),
    ({"schema": "Arrival_Hour STRING, id INT", "partition": "hour"}, "Arrival_Hour is a column that the sink adds"),
    ({"schema": "shardId STRING", "keep": ["shardId"]}, "column shardId would be one column"),
    ({"schema": "SHARDID STRING", "keep": ["shardId"]}, "column SHARDID and column shardId would be one column"),
    ({"schema": "documentIndex INT", "keep": ["documentIndex"], "decode": "json-lines"}, "column documentIndex would be one column"),
    ({"schema": "id INT, ID INT"}, "column id and column ID would be one column"),
    ({"schema": "id INT, _corrupt_record INT"}, "_corrupt_record is a int; make it a STRING"),
    ({"schema": "x MAP<INT, INT>"}, "is not a list of columns"),
]


@pytest.mark.parametrize(("args", "message"), COLLIDING)
def test_a_column_that_would_be_lost_is_refused_before_the_first_batch(spark: SparkSession, args: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        rows.check(spark, options.rows({"decode": "json"} | args))


def test_columns_of_the_same_names_are_good_where_nothing_is_added(spark: SparkSession, read: Read) -> None:
    assert read([b'{"arrival_day":"x","shardId":"y"}'], "arrival_day STRING, shardId STRING") == [{"arrival_day": "x", "shardId": "y"}]
    rows.check(spark, options.rows({"decode": "json", "schema": "arrival_day STRING", "partition": "hour", "keep": ["approximateArrivalTimestamp"]}))


def test_a_process_of_its_own_decodes_as_the_sinks_do(spark: SparkSession) -> None:
    batch = batch_of(spark, [b'{"approximateArrivalTimestamp":"x"}']).selectExpr("data", "1 AS mine")
    assert json_rows(batch, "approximateArrivalTimestamp STRING", ["mine"]).collect() == [("x", 1)]
    for data in (b"no", b"\xff"):
        with pytest.raises(Exception, match="MALFORMED_RECORD: it is not"):
            json_rows(batch_of(spark, [data]).select("data"), "id INT").collect()
    with pytest.raises(Refused, match=r"^schema: 'id NOTHING' is not a list of columns"):
        json_rows(batch, "id NOTHING")
    with pytest.raises(Refused, match=r"^keep: the batch has no column yours; it has data, mine"):
        json_rows(batch, "id INT", ["yours"])
    with pytest.raises(Refused, match=r"^keep: the batch has no column documentIndex"):
        json_rows(batch, "id INT", ["documentIndex"])


def test_a_stream_is_decoded_as_a_batch_is(spark: SparkSession, tmp_path: Path) -> None:
    """What examples/state-to-delta does: state over the documents of a streaming query; a record that is none ends the query."""
    batch_of(spark, [b'{"id":1}{"id":2}', b'{"id":2}']).write.parquet(f"{tmp_path}/came")
    stream = spark.readStream.schema(DDL).parquet(f"{tmp_path}/came")

    def counted(*, lines: bool) -> list[Any]:
        counts = json_rows(stream, "id INT", lines=lines).groupBy("id").count().coalesce(1)
        name = f"counts_{lines}"
        counts.writeStream.format("memory").queryName(name).outputMode("complete").trigger(availableNow=True).start().awaitTermination()
        return sorted(tuple(row) for row in spark.table(name).collect())

    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        assert counted(lines=True) == [(1, 1), (2, 2)]
        with pytest.raises(Exception, match="MALFORMED_RECORD"):
            counted(lines=False)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
