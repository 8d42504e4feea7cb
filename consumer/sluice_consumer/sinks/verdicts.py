"""What a failure of a sink means: wrong input, which is refused, or something that may pass by itself (docs/sinks.md, "When a sink fails"). Pure.

Java's exceptions are judged by the names of their classes and by their words, from the outermost to its root.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sluice_checkpoints.errors import SluiceError

LONGEST = 300  # characters of Java's words
LEAST = 3  # characters of a word of Java's that says something


class SinkUnavailable(SluiceError):
    """The sink's store or catalog did not take the batch, and may take it later. Nothing of it counts; it comes again."""


@dataclass(frozen=True)
class Thrown:
    """One exception of a chain: the name of its class without its package, and its message."""

    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


@dataclass(frozen=True)
class Verdict:
    """What a chain of exceptions means.

    Attributes:
        certain: the input is wrong; False: it may pass by itself.
        told: the cause, and what to do next.
    """

    certain: bool
    told: str


@dataclass(frozen=True)
class KnownCause:
    """Words by which a cause is known, and what to do next."""

    by: re.Pattern[str]
    cause: str
    next: str


def _known(by: str, cause: str, following: str) -> KnownCause:
    return KnownCause(re.compile(by), cause, following)


PASSING = re.compile(
    r"\b(ConnectException|UnknownHostException|NoRouteToHostException|SocketException|\w*TimeoutException|HttpHostConnectException"
    r"|SSL\w*Exception|AWSServiceThrottledException|AWSStatus500Exception|AWSClientIOException|SdkClientException|ServiceUnavailableException"
    r"|ServiceFailureException|RESTException|ExpiredToken\w*|RequestTimeTooSkewed|SlowDown"
    r"|CommitFailedException|CommitStateUnknownException|Concurrent(Append|DeleteRead|DeleteDelete|Transaction|Write)Exception"
    r"|(Metadata|Protocol)ChangedException|DeltaConcurrentModificationException)\b|Status Code: (429|5\d\d)"
)
"""Nobody answers, somebody answers that it cannot now, or another writer was faster."""
OF_TASKS = re.compile(r"\bPythonException\b|MALFORMED_RECORD|\bBadRecordException\b")
"""Reading the stream failed, or the user's function, or a document: whatever it says, it is not the sink that says it."""

KNOWN = (
    _known(r"UnknownStoreException|NoSuchBucket", "the bucket does not exist", "make it, or name another one"),
    _known(
        r"(?i)access key id|InvalidAccessKeyId|NoAwsCredentialsException",
        "the access key is missing, or the store does not know it",
        "correct the pod's AWS credentials, or spark.hadoop.fs.s3a.access.key in sparkConf",
    ),
    _known(
        r"SignatureDoesNotMatch|request signature we calculated",
        "the secret key is wrong",
        "correct the pod's AWS credentials, or spark.hadoop.fs.s3a.secret.key in sparkConf",
    ),
    _known(
        r"AccessDenied|AccessControlException|ForbiddenException|NotAuthorizedException|Status Code: 40[13]",
        "the store or catalog refuses the driver's account",
        "check its keys, and let it read, write, list and delete there",
    ),
    _known(
        r"ClassNotFoundException|NoClassDefFoundError|CATALOG_PLUGIN_CLASS_NOT_FOUND|Cannot find catalog plugin class|UnsupportedFileSystemException",
        "a class is missing in this Spark",
        "use an image with its jar (docs/images.md), or correct the name in sparkConf",
    ),
    _known(r"NoSuchNamespaceException|SCHEMA_NOT_FOUND|NoSuchDatabaseException", "there is no such namespace", "make it: CREATE NAMESPACE …"),
    _known(
        r"NoSuchTableException|TABLE_OR_VIEW_NOT_FOUND|DELTA_(TABLE|PATH)_(NOT_FOUND|DOES_NOT_EXIST)|DELTA_MISSING_DELTA_TABLE"
        r"|Metadata file for version \d+ is missing",
        "there is no such table (any more)",
        "make it, or set pipeline.args.create: true",
    ),
    _known(
        r"INCOMPATIBLE_DATA_FOR_TABLE|INSERT_COLUMN_ARITY_MISMATCH|DELTA_FAILED_TO_MERGE_FIELDS|DELTA_METADATA_MISMATCH|DELTA_MERGE_INCOMPATIBLE"
        r"|DELTA_\w*SCHEMA\w*|schema mismatch detected",
        "the rows do not fit the table",
        "change pipeline.args.schema or transform, or the table's columns",
    ),
    _known(
        r"PARSE_SYNTAX_ERROR|REQUIRES_SINGLE_PART_NAMESPACE|\bParseException\b",
        "it is no name of a table",
        "name it with its catalog, as in lake.db.orders",
    ),
    _known(
        r"Cannot (initialize|instantiate|create) .*[Cc]atalog|Unknown catalog type",
        "the catalog cannot be made",
        "correct spark.sql.catalog.* in sparkConf",
    ),
    _known(
        r"DELTA_CONFIGURE_SPARK_SESSION", "this session has no Delta", "set spark.sql.extensions and spark.sql.catalog.spark_catalog in sparkConf"
    ),
)


def verdict(chain: Sequence[Thrown]) -> Verdict | None:
    """What the exceptions mean, outermost first. None: it is none of a sink's store, table or catalog, so nothing is known."""
    told = [str(thrown) for thrown in chain]
    if any(OF_TASKS.search(line) for line in told):
        return None
    if any(PASSING.search(line) for line in told):
        return Verdict(certain=False, told=f"{words(chain)}; nothing of the batch counts, and it comes again")
    for known in KNOWN:
        if any(known.by.search(line) for line in told):
            return Verdict(certain=True, told=f"{words(chain)}: {known.cause}; {known.next}")
    return None


def words(chain: Sequence[Thrown]) -> str:
    """The first line of the innermost exception that says something, cut."""
    saying = [thrown for thrown in chain if len(thrown.message.strip()) > LEAST]
    if not saying:
        return chain[-1].name if chain else "no cause is known"
    said = saying[-1]
    line = said.message.strip().splitlines()[0]
    line = re.sub(r",? ?(Request ID|Extended Request ID): [^,)]*", "", line).replace("(SDK Attempt Count: 1)", "").strip()
    return f"{said.name}: {line if len(line) <= LONGEST else line[: LONGEST - 1] + '…'}"
