"""What a failure of a sink means: wrong input, which is refused, or something that may pass without a change (docs/sinks.md, "When a sink fails").

Pure.

Java's exceptions are judged by their classes, and by the codes that they carry as fields. A message may quote a record, so it is not searched.
Where a library has nothing else, the beginning of the message counts, of classes that quote no record there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sluice_checkpoints.errors import SluiceError

LONGEST = 300  # characters of Java's words
NEVER = r"(?!)"
LEAST = 3  # characters of a word of Java's that says something


class SinkUnavailable(SluiceError):
    """The sink's store or catalog did not take the batch, and may take it later. Nothing of it counts; it comes again."""


@dataclass(frozen=True)
class Thrown:
    """One exception of a chain.

    Attributes:
        name: of its class, without the package.
        message: for people, and for `KnownCause.begins`.
        condition: Spark's or Delta's error condition, as `TABLE_OR_VIEW_NOT_FOUND`; "" if it has none.
        sqlstate: of that condition, or "".
        aws: the error code of AWS, or "".
        http: the HTTP status of a store or catalog, or 0.
    """

    name: str
    message: str
    condition: str = ""
    sqlstate: str = ""
    aws: str = ""
    http: int = 0

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


@dataclass(frozen=True)
class Verdict:
    """What a chain of exceptions means.

    Attributes:
        certain: the input is wrong; False: it may pass on its own.
        message: the cause, and what to do next.
    """

    certain: bool
    message: str


@dataclass(frozen=True)
class KnownCause:
    """By what a cause is known, and what to do next. Each expression is of the whole; `begins` is of a class and the beginning of its message."""

    cause: str
    next: str
    names: str = NEVER
    conditions: str = NEVER
    aws: str = NEVER
    http: frozenset[int] = frozenset()
    begins: tuple[tuple[str, str], ...] = ()

    def of(self, thrown: Thrown) -> bool:
        """Whether an exception shows this cause."""
        return (
            bool(re.fullmatch(self.names, thrown.name) or re.fullmatch(self.conditions, thrown.condition) or re.fullmatch(self.aws, thrown.aws))
            or thrown.http in self.http
            or any(re.fullmatch(name, thrown.name) and re.match(words, thrown.message) for name, words in self.begins)
        )


PASSING = KnownCause(
    "it may pass on its own",
    "",
    names=r"ConnectException|UnknownHostException|NoRouteToHostException|SocketException|\w*TimeoutException|HttpHostConnectException"
    r"|SSL\w*Exception|AWSServiceThrottledException|AWSStatus500Exception|AWSClientIOException|SdkClientException|ServiceUnavailableException"
    r"|ServiceFailureException|RESTException"
    r"|CommitFailedException|CommitStateUnknownException|Concurrent(Append|DeleteRead|DeleteDelete|Transaction|Write)Exception"
    r"|(Metadata|Protocol)ChangedException|DeltaConcurrentModificationException",
    aws=r"ExpiredToken\w*|RequestTimeTooSkewed|SlowDown",
    http=frozenset({429, *range(500, 600)}),
)
"""Nobody answers, somebody answers that it cannot now, or another writer was faster."""
MISFIT = KnownCause(
    "the rows do not fit the table",
    "change pipeline.args.schema or transform, or the table's columns",
    conditions=r"(INCOMPATIBLE_DATA_FOR_TABLE|INSERT_COLUMN_ARITY_MISMATCH|DELTA_FAILED_TO_MERGE_FIELDS|DELTA_METADATA_MISMATCH"
    r"|DELTA_MERGE_INCOMPATIBLE\w*|DELTA_\w*SCHEMA\w*)(\.\w+)?",
    begins=(("(Delta)?AnalysisException", "A schema mismatch detected"),),
)
OF_TASKS = KnownCause(
    "", "", names="PythonException|BadRecordException", conditions=r"(MALFORMED_RECORD_IN_PARSING|USER_RAISED_EXCEPTION|FAILED_EXECUTE_UDF)(\.\w+)?"
)
"""Reading the stream failed, or the user's function, or a document: whatever it says, it is not the sink that says it."""
OF_VALUES = ("22", "23")  # classes of SQLSTATE: a value, or a constraint on it

KNOWN = (
    KnownCause(
        "the bucket does not exist", "create it, or name another one", names="UnknownStoreException|NoSuchBucketException", aws="NoSuchBucket"
    ),
    KnownCause(
        "the access key is missing, or the store does not know it",
        "correct the pod's AWS credentials, or spark.hadoop.fs.s3a.access.key in sparkConf",
        names="NoAwsCredentialsException",
        aws="InvalidAccessKeyId",
        begins=(("(Amazon)?S3Exception", "[^(]{0,60}(?i:access key id)"),),
    ),
    KnownCause(
        "the secret key is wrong",
        "correct the pod's AWS credentials, or spark.hadoop.fs.s3a.secret.key in sparkConf",
        aws="SignatureDoesNotMatch",
        begins=(("(Amazon)?S3Exception", "The request signature we calculated"),),
    ),
    KnownCause(
        "the store or catalog refuses the driver's account",
        "check its keys, and let it read, write, list and delete there",
        names="AccessDeniedException|AccessControlException|ForbiddenException|NotAuthorizedException",
        aws="AccessDenied(Exception)?",
        http=frozenset({401, 403}),
    ),
    KnownCause(
        "a class is missing in this Spark",
        "use an image with its jar (docs/images.md), or correct the name in sparkConf",
        names="ClassNotFoundException|NoClassDefFoundError|UnsupportedFileSystemException",
        conditions="CATALOG_PLUGIN_CLASS_NOT_FOUND(_\\w+)?",
        begins=(("SparkException", "Cannot find catalog plugin class"),),
    ),
    KnownCause(
        "there is no such namespace",
        "create it: CREATE NAMESPACE …",
        names="NoSuchNamespaceException|NoSuchDatabaseException",
        conditions="SCHEMA_NOT_FOUND",
    ),
    KnownCause(
        "there is no such table (any more)",
        "create it, or set pipeline.args.create: true",
        names="NoSuchTableException",
        conditions="TABLE_OR_VIEW_NOT_FOUND|DELTA_(TABLE|PATH)_(NOT_FOUND|DOES_NOT_EXIST)|DELTA_MISSING_DELTA_TABLE",
        begins=(("ValidationException", r"Metadata file for version \d+ is missing"),),
    ),
    MISFIT,
    KnownCause(
        "it is not the name of a table",
        "name it with its catalog, as in lake.db.orders",
        names="ParseException",
        conditions="PARSE_SYNTAX_ERROR|REQUIRES_SINGLE_PART_NAMESPACE",
    ),
    KnownCause(
        "the catalog cannot be made",
        "correct spark.sql.catalog.* in sparkConf",
        begins=(
            ("IllegalArgumentException|SparkException", r"Cannot (initialize|instantiate|create) [^:]{0,80}[Cc]atalog"),
            ("UnsupportedOperationException", "Unknown catalog type"),
        ),
    ),
    KnownCause(
        "this session has no Delta",
        "set spark.sql.extensions and spark.sql.catalog.spark_catalog in sparkConf",
        conditions=r"DELTA_CONFIGURE_SPARK_SESSION\w*",
    ),
)


def verdict(chain: Sequence[Thrown]) -> Verdict | None:
    """What the exceptions mean, outermost first. None: it is none of a sink's store, table or catalog, so nothing is known."""
    if any(OF_TASKS.of(thrown) or of_value(thrown) for thrown in chain):
        return None
    if any(map(PASSING.of, chain)):
        return Verdict(certain=False, message=f"{words(chain)}; nothing of the batch counts, and it comes again")
    for known in KNOWN:
        if any(map(known.of, chain)):
            return Verdict(certain=True, message=f"{words(chain)}: {known.cause}; {known.next}")
    return None


def of_value(thrown: Thrown) -> bool:
    """Whether a value of a row is wrong, or a constraint refuses it. Delta gives columns of another type a SQLSTATE of values, too."""
    return thrown.sqlstate.startswith(OF_VALUES) and not MISFIT.of(thrown)


def words(chain: Sequence[Thrown]) -> str:
    """The first line of the innermost exception that says something, cut."""
    saying = [thrown for thrown in chain if len(thrown.message.strip()) > LEAST]
    if not saying:
        return chain[-1].name if chain else "no cause is known"
    last = saying[-1]
    line = last.message.strip().splitlines()[0]
    line = re.sub(r",? ?(Request ID|Extended Request ID): [^,)]*", "", line).replace("(SDK Attempt Count: 1)", "").strip()
    return f"{last.name}: {line if len(line) <= LONGEST else line[: LONGEST - 1] + '…'}"
