"""Which classes and codes of errors are known, and for what (docs/protocol.md, "Poison"). Pure: names only, no package of these is imported.

A class is known by its package and its name: `psycopg: DataError` is any class of that name below `psycopg`. A user's class of the same name is not.
"""

from __future__ import annotations

import re
from collections import defaultdict

Classes = dict[str, frozenset[str]]


def _classes(table: str) -> Classes:
    """Of lines `package: Name Name`; a package may have several."""
    classes: dict[str, set[str]] = defaultdict(set)
    for line in table.strip().splitlines():
        package, _, names = line.partition(":")
        classes[package.strip()].update(names.split())
    return {package: frozenset(names) for package, names in classes.items()}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def has(table: Classes, kind: str) -> bool:
    """Whether a table names a class. `kind`: with its module, as in `psycopg.errors.UniqueViolation`."""
    package, _, name = kind.rpartition(".")
    while package:
        if name in table.get(package, ()):
            return True
        package = package.rpartition(".")[0]
    return False


TRANSIENT = _classes(
    """
    builtins: ConnectionError TimeoutError MemoryError
    socket: gaierror herror timeout
    ssl: SSLError
    http.client: IncompleteRead RemoteDisconnected CannotSendRequest ResponseNotReady
    urllib.error: ContentTooShortError
    asyncio: TimeoutError IncompleteReadError
    concurrent.futures: TimeoutError BrokenExecutor
    requests: ConnectionError Timeout ChunkedEncodingError RetryError
    urllib3: TimeoutError ProtocolError MaxRetryError NewConnectionError ProxyError SSLError PoolError
    httpx: TimeoutException NetworkError ProxyError RemoteProtocolError PoolTimeout
    httpcore: TimeoutException NetworkError ProxyError RemoteProtocolError ConnectionNotAvailable
    aiohttp: ClientConnectionError ClientPayloadError
    botocore: HTTPClientError ConnectionError NoCredentialsError PartialCredentialsError CredentialRetrievalError TokenRetrievalError
    botocore: MetadataRetrievalError IncompleteReadError ResponseStreamingError UnauthorizedSSOTokenError SSOTokenLoadError
    psycopg: OperationalError InterfaceError
    psycopg_pool: PoolTimeout PoolClosed TooManyRequests
    psycopg2: OperationalError InterfaceError
    asyncpg: PostgresConnectionError ConnectionDoesNotExistError ConnectionFailureError TooManyConnectionsError
    pymysql: OperationalError InterfaceError
    MySQLdb: OperationalError InterfaceError
    mysql.connector: OperationalError InterfaceError PoolError
    mariadb: OperationalError InterfaceError PoolError
    oracledb: OperationalError InterfaceError
    pymssql: OperationalError InterfaceError
    clickhouse_connect: OperationalError
    sqlalchemy: TimeoutError
    pymongo: AutoReconnect ConnectionFailure NotPrimaryError NetworkTimeout WTimeoutError ExecutionTimeout CursorNotFound WaitQueueTimeoutError
    kafka: KafkaConnectionError KafkaTimeoutError NoBrokersAvailable NodeNotReadyError NotLeaderForPartitionError NotLeaderOrFollowerError
    kafka: LeaderNotAvailableError RequestTimedOutError CoordinatorNotAvailableError NotCoordinatorError NotEnoughReplicasError
    kafka: NotEnoughReplicasAfterAppendError BrokerNotAvailableError ReplicaNotAvailableError ThrottlingQuotaExceededError
    kafka: TopicAuthorizationFailedError ClusterAuthorizationFailedError
    aiokafka: KafkaConnectionError KafkaTimeoutError NoBrokersAvailable NodeNotReadyError NotLeaderForPartitionError LeaderNotAvailableError
    aiokafka: RequestTimedOutError
    cassandra: NoHostAvailable Unavailable Timeout ReadTimeout WriteTimeout OperationTimedOut ConnectionException ConnectionShutdown ConnectionBusy
    cassandra: OverloadedErrorMessage IsBootstrappingErrorMessage AuthenticationFailed Unauthorized
    redis: ConnectionError TimeoutError BusyLoadingError ReadOnlyError TryAgainError ClusterDownError MasterDownError AskError MovedError
    redis: OutOfMemoryError NoPermissionError
    elastic_transport: ConnectionError ConnectionTimeout TlsError
    elasticsearch: ConnectionError ConnectionTimeout
    opensearchpy: ConnectionError ConnectionTimeout SSLError
    google.api_core: ServiceUnavailable TooManyRequests DeadlineExceeded RetryError InternalServerError GatewayTimeout BadGateway Forbidden
    google.api_core: Unauthorized
    google.auth: TransportError RefreshError DefaultCredentialsError
    azure.core: ServiceRequestError ServiceResponseError ClientAuthenticationError
    pika: AMQPConnectionError ConnectionClosed ChannelClosed StreamLostError
    nats: TimeoutError NoServersError ConnectionClosedError ConnectionReconnectingError
    snowflake.connector: OperationalError ServiceUnavailableError GatewayTimeoutError
    py4j: Py4JNetworkError
    java.net: SocketException SocketTimeoutException UnknownHostException ConnectException NoRouteToHostException PortUnreachableException
    java.net.http: HttpTimeoutException
    java.nio.channels: ClosedChannelException UnresolvedAddressException
    java.nio.file: AccessDeniedException
    java.io: InterruptedIOException
    java.lang: OutOfMemoryError InterruptedException
    java.util.concurrent: TimeoutException
    java.util: ConcurrentModificationException
    java.sql: SQLTransientException SQLRecoverableException SQLNonTransientConnectionException SQLInvalidAuthorizationSpecException
    javax.net.ssl: SSLException
    com.mysql.cj: CommunicationsException CJCommunicationsException ConnectionIsClosedException MySQLTransactionRollbackException
    com.mongodb: MongoSocketException MongoTimeoutException MongoNotPrimaryException MongoNodeIsRecoveringException
    com.datastax: NoHostAvailableException AllNodesFailedException DriverTimeoutException UnavailableException OverloadedException
    org.apache.http: NoHttpResponseException ConnectTimeoutException HttpHostConnectException ConnectionClosedException
    org.apache.hc: NoHttpResponseException HttpHostConnectException ConnectionClosedException
    org.apache.kafka.common: RetriableException AuthenticationException AuthorizationException
    org.apache.hadoop.ipc: RetriableException StandbyException
    org.apache.hadoop.security: AccessControlException
    org.apache.hadoop.fs: FSError
    org.apache.hadoop.fs.s3a: AWSServiceThrottledException AWSStatus500Exception AWSClientIOException AWSApiCallTimeoutException
    org.apache.hadoop.net: ConnectTimeoutException
    software.amazon.awssdk.core.exception: SdkClientException RetryableException ApiCallTimeoutException ApiCallAttemptTimeoutException
    software.amazon.awssdk.core.exception: AbortedException
    org.apache.iceberg.exceptions: CommitFailedException CommitStateUnknownException ServiceFailureException ServiceUnavailableException
    org.apache.iceberg.exceptions: NotAuthorizedException ForbiddenException
    io.delta.exceptions: DeltaConcurrentModificationException ConcurrentAppendException ConcurrentDeleteReadException
    io.delta.exceptions: ConcurrentDeleteDeleteException ConcurrentTransactionException ConcurrentWriteException MetadataChangedException
    io.delta.exceptions: ProtocolChangedException
    org.apache.spark.sql.delta: DeltaConcurrentModificationException ConcurrentAppendException ConcurrentDeleteReadException
    org.apache.spark.sql.delta: ConcurrentDeleteDeleteException ConcurrentTransactionException ConcurrentWriteException MetadataChangedException
    org.apache.spark.sql.delta: ProtocolChangedException
    org.apache.spark.shuffle: FetchFailedException MetadataFetchFailedException
    org.apache.spark: TaskKilledException
    org.apache.spark.memory: SparkOutOfMemoryError
    """
)
"""Something cannot be reached, is too busy, refuses the account, has no room, or another writer was faster. Classes below these say so, too."""

ITSELF = _classes(
    """
    urllib.error: URLError
    asyncpg: InterfaceError
    org.apache.iceberg.exceptions: RESTException
    """
)
"""The same, but classes below these say something else."""

DATA = _classes(
    """
    builtins: ValueError TypeError LookupError ArithmeticError AttributeError AssertionError RecursionError SyntaxError
    struct: error
    zlib: error
    csv: Error
    _csv: Error
    gzip: BadGzipFile
    lzma: LZMAError
    _lzma: LZMAError
    pickle: UnpicklingError
    _pickle: UnpicklingError
    jsonschema: ValidationError
    fastavro: SchemaResolutionError ValidationError
    avro: AvroException
    google.protobuf: DecodeError
    psycopg: DataError IntegrityError
    psycopg2: DataError IntegrityError
    pymysql: DataError IntegrityError
    MySQLdb: DataError IntegrityError
    mysql.connector: DataError IntegrityError
    mariadb: DataError IntegrityError
    oracledb: DataError IntegrityError
    pymssql: DataError IntegrityError
    sqlite3: DataError IntegrityError
    sqlalchemy: DataError IntegrityError
    asyncpg: DataError IntegrityConstraintViolationError
    pymongo: DuplicateKeyError DocumentTooLarge
    redis: DataError
    kafka: MessageSizeTooLargeError
    java.lang: NumberFormatException ArithmeticException
    java.time: DateTimeException
    java.sql: SQLDataException SQLIntegrityConstraintViolationException
    org.apache.kafka.common.errors: RecordTooLargeException SerializationException
    """
)
"""What code says of a value: it would say the same again."""

CLIENTS = frozenset({"requests", "urllib3", "httpx", "httpcore", "aiohttp", "botocore", "boto3", "elasticsearch", "opensearchpy"})
"""Their ValueErrors are often of an answer (a page of a proxy instead of JSON), not of the record."""

OWN = ("sluice_checkpoints.", "sluice_consumer.")
"""Modules whose errors are none of the user's code."""

CARRIERS = ("pyspark.", "py4j.", "org.apache.spark.")
"""Modules whose errors bring another one."""

AWS = re.compile(
    r"\w*Throttl\w*|Throttling\.\w+|\w*Unavailable\w*|SlowDown|\w*TooManyRequests\w*|ProvisionedThroughputExceeded\w*|(?!\w*SizeLimit)\w*LimitExceeded\w*|RequestTimeout\w*"
    r"|\w*Timeout\w*|Internal(Error|Failure|Server\w*)|KMS\w*|\w*InProgress\w*|TransactionConflict\w*|TransactionInProgress\w*|OperationAborted|ConditionalRequestConflict"
    r"|Expired\w*|\w*AccessDenied\w*|Forbidden\w*|\w*Unauthori[sz]ed\w*|\w*NotAuthori[sz]ed\w*|InvalidClientTokenId|InvalidAccessKeyId|SignatureDoesNotMatch"
    r"|UnrecognizedClient\w*|IncompleteSignature|MissingAuthenticationToken\w*|RequestTimeTooSkewed|InvalidSignature\w*|OptInRequired|\w*Busy\w*|ResourceInUse\w*|50\d|403|429"
)
"""Codes of AWS, whole. A limit of a size is the record's."""
AWS_DATA = re.compile(
    r"(AWS\.SimpleQueueService\.)?(Validation(Exception|Error)|InvalidParameter(Value)?(Exception)?|ParameterValueInvalid(Exception)?|InvalidArgumentException"
    r"|SerializationException|EntityTooLarge|RequestEntityTooLarge\w*|KeyTooLongError|InvalidMessageContents|MessageTooLong|BatchRequestTooLong"
    r"|MaxMessageLengthExceeded)"
)
SQL = re.compile(r"(08|28|40|53|57|58)\w{3}|25006|42501|55P03|55006")
"""SQLSTATEs: connection, account, deadlock, no resources, shut down, I/O; read-only replica, privilege, lock."""
BY_POLICY = "ExecWithCheckOptions"
"""PostgreSQL's routine that refuses a row: the SQLSTATE is that of an account without a privilege."""
SQL_DATA = re.compile(rf"((22|23)\w{{3}}|21000|44000)( {BY_POLICY})?|42501 {BY_POLICY}")
"""A value, a constraint; several rows for one, the check option of a view, a policy of row-level security."""
MYSQL = _words(
    """
    1044 1045 1142 1143 1227 1021 1037 1038 1041 1114 1135 1040 1042 1043 1047 1053 1077 1129 1130 1226 1290 1792 1836
    1152 1158 1159 1160 1161 1184 1927 2002 2003 2005 2006 2013 2026 2055 4031 1203 1205 1206 1213 1317 1614 3024 3572
    """
)
"""The account, no room, shut down or read-only; the network, a lock."""
MONGO = _words("6 7 13 18 50 64 89 91 112 189 262 9001 10107 11600 11602 13435 13436")
HTTP = re.compile(r"401|403|407|408|423|425|429|5\d\d")
HTTP_DATA = _words("400 413 422")
GRPC = _words("UNAVAILABLE DEADLINE_EXCEEDED RESOURCE_EXHAUSTED ABORTED UNAUTHENTICATED PERMISSION_DENIED")
ERRNO = _words(
    """
    ECONNREFUSED ECONNRESET ECONNABORTED ENOTCONN EPIPE ESHUTDOWN ETIMEDOUT EHOSTUNREACH EHOSTDOWN ENETUNREACH ENETDOWN ENETRESET EADDRNOTAVAIL
    EAGAIN EINTR EBUSY ENOSPC EDQUOT EMFILE ENFILE ENOMEM ENOBUFS EIO EROFS ESTALE EACCES EPERM ENOLCK EDEADLK
    """
)
SQLITE = _words("SQLITE_BUSY SQLITE_LOCKED SQLITE_IOERR SQLITE_FULL SQLITE_CANTOPEN SQLITE_READONLY SQLITE_NOMEM SQLITE_PERM")
