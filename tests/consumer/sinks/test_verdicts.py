"""What failures of a sink mean. The chains are of real ones: S3A 3.4.3, Iceberg 1.12, Delta 4.4, Spark 4.1, versitygw."""

from __future__ import annotations

import re

import pytest

from sluice_consumer.sinks import verdicts
from sluice_consumer.sinks.verdicts import Thrown

ID = "Request ID: J2XC7C0BYLEIVHC2, Extended Request ID: gCe2uqT3Cg1LNJCPHg+gdwAg="
S3 = "software.amazon.awssdk.services.s3.model."
REFUSED: dict[str, tuple[list[tuple[str, str]], str]] = {
    "no bucket": (
        [
            ("UnknownStoreException", f"`s3a://nohere/o/_sluice': getFileStatus on s3a://nohere/o/_sluice: {S3}NoSuchBucketException: The specified"),
            ("NoSuchBucketException", f"The specified bucket does not exist. (Service: S3, Status Code: 404, {ID}) (SDK Attempt Count: 1)"),
        ],
        "NoSuchBucketException: The specified bucket does not exist. (Service: S3, Status Code: 404): the bucket does not exist; create it",
    ),
    "no bucket, of Iceberg": (
        [
            ("RuntimeIOException", "Failed to refresh the table"),
            (
                "UnknownStoreException",
                "`s3a://nohere/w/db/t/metadata/v0.metadata.json': getFileStatus on s3a://nohere/w/db/t/metadata/v0.metadata.json",
            ),
            ("NoSuchBucketException", f"The specified bucket does not exist. (Service: S3, Status Code: 404, {ID}) (SDK Attempt Count: 1)"),
        ],
        "the bucket does not exist; create it",
    ),
    "an access key that the store does not know": (
        [
            ("DeltaIOException", "[DELTA_CANNOT_CREATE_LOG_PATH] Cannot create s3a://wrongkeys/d/_delta_log"),
            ("FileNotFoundException", f"PUT 0-byte object  on d/_delta_log/_staged_commits: {S3}S3Exception: No user exists with the provided"),
            ("S3Exception", f"No user exists with the provided access key ID. (Service: S3, Status Code: 404, {ID}) (SDK Attempt Count: 1)"),
        ],
        "the access key is missing, or the store does not know it; correct the pod's AWS credentials",
    ),
    "no keys": (
        [
            (
                "AccessDeniedException",
                "s3a://nokeys/o/_sluice: org.apache.hadoop.fs.s3a.auth.NoAwsCredentialsException: SimpleAWSCredentialsProvider: No",
            ),
            ("NoAwsCredentialsException", "SimpleAWSCredentialsProvider: No AWS credentials in the Hadoop configuration"),
        ],
        "the access key is missing",
    ),
    "a wrong secret, seen by HEAD": (
        [
            ("AccessDeniedException", f"s3a://wrongsecret/o/_sluice: getFileStatus on s3a://wrongsecret/o/_sluice: {S3}S3Exception: Forbidden"),
            ("S3Exception", f"Forbidden (Service: S3, Status Code: 403, {ID})"),
        ],
        "S3Exception: Forbidden (Service: S3, Status Code: 403): the store or catalog refuses the driver's account; check its keys, and let it",
    ),
    "a wrong secret": (
        [
            (
                "AccessDeniedException",
                f"s3a://wrongsecret/d/_delta_log: listObjects() on s3a://wrongsecret/d/_delta_log: {S3}S3Exception: The request",
            ),
            ("S3Exception", "The request signature we calculated does not match the signature you provided. Check your key and signing method."),
        ],
        "the secret key is wrong; correct the pod's AWS credentials",
    ),
    "no class": (
        [
            ("RuntimeException", "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"),
            ("ClassNotFoundException", "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found"),
        ],
        "Class org.apache.hadoop.fs.s3a.S3AFileSystem not found: a class is missing in this Spark; use an image with its jar (docs/images.md)",
    ),
    "no file system": ([("UnsupportedFileSystemException", 'No FileSystem for scheme "gs"')], "a class is missing in this Spark"),
    "no table": (
        [("NoSuchTableException", "[TABLE_OR_VIEW_NOT_FOUND] The table or view db.t cannot be found. Verify the spelling\nIf you did not")],
        "there is no such table (any more); create it",
    ),
    "a table of Iceberg's that is gone": (
        [("ValidationException", "Metadata file for version 5 is missing under s3a://lake/w/db/t/metadata")],
        "there is no such table (any more); create it",
    ),
    "no namespace": (
        [("NoSuchNamespaceException", "[SCHEMA_NOT_FOUND] The schema `spark_catalog`.`nodb` cannot be found. Verify the spelling")],
        "there is no such namespace; create it: CREATE NAMESPACE",
    ),
    "more columns": (
        [("AnalysisException", "[INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS] Cannot write to `lake`.`db`.`t`, the reason is too many data")],
        "the rows do not fit the table; change pipeline.args.schema",
    ),
    "another type": (
        [("AnalysisException", '[INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST] Cannot write: Cannot safely cast `id` "STRING" to "BIGINT".')],
        'Cannot safely cast `id` "STRING" to "BIGINT".: the rows do not fit the table',
    ),
    "another type, of Delta": (
        [
            ("DeltaAnalysisException", "[DELTA_FAILED_TO_MERGE_FIELDS] Failed to merge fields 'id' and 'id'"),
            ("DeltaAnalysisException", "[DELTA_MERGE_INCOMPATIBLE_DATATYPE] Failed to merge incompatible data types LongType and StringType"),
        ],
        "LongType and StringType: the rows do not fit the table",
    ),
    "no name": (
        [("ParseException", "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 't': extra input 't'. SQLSTATE: 42601")],
        "name it with its catalog",
    ),
}
PASSING: dict[str, list[tuple[str, str]]] = {
    "nobody listens": [("RuntimeIOException", "Failed to refresh the table"), ("ConnectException", "Connection refused")],
    "throttled": [("AWSServiceThrottledException", "x: Please reduce your request rate (Service: S3, Status Code: 503)")],
    "an error of the server": [("AWSStatus500Exception", "We encountered an internal error (Service: S3, Status Code: 500)")],
    "credentials that have just expired": [
        ("AccessDeniedException", "x"),
        ("S3Exception", "ExpiredToken: The provided token has expired. Status Code: 403"),
    ],
    "another writer of an Iceberg table": [("CommitFailedException", "Table metadata refresh is required")],
    "a lost reply of an Iceberg catalog": [("SparkException", "Writing job aborted"), ("CommitStateUnknownException", "Cannot determine whether")],
    "another writer of a Delta table": [("ConcurrentAppendException", "[DELTA_CONCURRENT_APPEND] ConcurrentAppendException: Files were added")],
    "another attempt in a Delta table": [("ConcurrentTransactionException", "[DELTA_CONCURRENT_TRANSACTION] a concurrent transaction")],
    "another schema of a Delta table": [("MetadataChangedException", "[DELTA_METADATA_CHANGED] The metadata of the Delta table has been changed")],
    "403 in a chain with a time-out": [("AccessDeniedException", "s3a://lake/o: Forbidden"), ("SocketTimeoutException", "Read timed out")],
}


SQLSTATES = {"DELTA_FAILED_TO_MERGE_FIELDS": "22005", "MALFORMED_RECORD_IN_PARSING": "22023", "USER_RAISED_EXCEPTION": "P0001"}
CODES = {"NoSuchBucketException": "NoSuchBucket"}


def chain(pairs: list[tuple[str, str]]) -> list[Thrown]:
    """As the edge makes it: what these libraries write into a message, their exceptions have as fields too."""
    return [thrown(*pair) for pair in pairs]


def thrown(name: str, message: str) -> Thrown:
    condition = re.match(r"\s*\[([A-Z][\w.]+)\]", message)
    status = re.search(r"Status Code: (\d+)", message) if re.fullmatch("S3Exception|NoSuchBucketException", name) else None
    code = re.match(r"(ExpiredToken):", message)
    found = condition[1] if condition else ""
    return Thrown(
        name, message, found, SQLSTATES.get(found.partition(".")[0], ""), code[1] if code else CODES.get(name, ""), int(status[1]) if status else 0
    )


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_input_is_told_with_its_cause_and_the_next_step(case: str) -> None:
    pairs, words = REFUSED[case]
    found = verdicts.verdict(chain(pairs))
    assert found is not None
    assert found.certain
    assert words in found.message
    assert "Request ID" not in found.message


@pytest.mark.parametrize("case", PASSING)
def test_what_may_pass_by_itself_is_not_refused(case: str) -> None:
    found = verdicts.verdict(chain(PASSING[case]))
    assert found is not None
    assert not found.certain
    assert found.message.endswith("nothing of the batch counts, and it comes again")


MALFORMED = "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected in record parsing: [null,null]."


@pytest.mark.parametrize(
    "pairs",
    [
        [("SparkException", "Job aborted"), ("PythonException", "Traceback: botocore ConnectException Status Code: 503")],
        [
            ("SparkException", "Job aborted"),
            ("SparkException", MALFORMED),
            ("BadRecordException", ""),
            ("JsonParseException", "Unexpected character"),
        ],
        [
            (
                "SparkException",
                f"Job aborted due to stage failure: {MALFORMED}\n\tat x.y(Z.scala:1)\nCaused by: com.x.core.JsonParseException: Unexpected",
            )
        ],
        [("SparkRuntimeException", "[USER_RAISED_EXCEPTION] MALFORMED_RECORD: shardId s, sequenceNumber 503: it is not UTF-8"), ("AccessDenied", "")],
        [("ArithmeticException", "/ by zero")],
        [("SparkException", "Job aborted"), ("SparkRuntimeException", "[FAILED_EXECUTE_UDF] of a user's class"), ("ConnectException", "refused")],
        [],
    ],
)
def test_what_is_no_failure_of_the_sink_is_left_as_it_is(pairs: list[tuple[str, str]]) -> None:
    assert verdicts.verdict(chain(pairs)) is None


WORDS = (
    "AccessDenied", "NoSuchBucket", "Status Code: 503", "Status Code: 403", "ConnectException", "SlowDown", "SocketTimeoutException: timed out",
    "ClassNotFoundException", "[TABLE_OR_VIEW_NOT_FOUND]", "DELTA_METADATA_MISMATCH", "Metadata file for version 5 is missing", "InvalidAccessKeyId",
    "The request signature we calculated", "PARSE_SYNTAX_ERROR", "Cannot initialize Catalog", "Unknown catalog type",
    "no access key id", "PythonException",
)  # fmt: skip


@pytest.mark.parametrize("words", WORDS)
def test_a_record_cannot_forge_what_a_failure_means(words: str) -> None:
    quoted = [
        [Thrown("SparkNumberFormatException", f"[CAST_INVALID_INPUT] The value '{words}' of", "CAST_INVALID_INPUT", "22018")],
        [
            Thrown(
                "DeltaInvariantViolationException", f'[DELTA_EXCEED_CHAR_VARCHAR_LIMIT] Value "{words}"', "DELTA_EXCEED_CHAR_VARCHAR_LIMIT", "22001"
            )
        ],
        [Thrown("SparkException", "Job aborted"), Thrown("RuntimeException", words)],
        [Thrown("NumberFormatException", f'For input string: "{words}"')],
        [Thrown("SparkException", f"Job aborted due to stage failure: a task failed: x.y.Z: {words}\nCaused by: {words}")],
    ]
    assert [verdicts.verdict(each) for each in quoted] == [None] * len(quoted)


@pytest.mark.parametrize("sqlstate", ["22018", "23502"])
def test_a_wrong_value_is_no_failure_of_the_sink_whatever_else_failed(sqlstate: str) -> None:
    assert verdicts.verdict([Thrown("SparkException", "", "X", sqlstate), Thrown("ConnectException", "refused")]) is None


def test_a_status_and_a_code_of_aws_are_enough() -> None:
    for fields, certain in (({"http": 503}, False), ({"aws": "SlowDown"}, False), ({"http": 403}, True), ({"aws": "SignatureDoesNotMatch"}, True)):
        found = verdicts.verdict([Thrown("S3Exception", "", **fields)])  # type: ignore[arg-type]
        assert (found and found.certain) is certain


def test_long_words_are_cut() -> None:
    assert len(verdicts.words([Thrown("E", "x" * 10_000)])) <= verdicts.LONGEST + len("E: ")
