"""A migrator on a real DynamoDB through its own adapters, with something between its client and the service."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError, ReadTimeoutError
from faults import Crash
from migrating.bench import settled
from migrating.stage import Case, Stage

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.dynamodb.create import DynamoTargets
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import DynamoTable
from sluice_checkpoints.formats.snapshot import KeySchema
from sluice_checkpoints.migrate.migrator import MigrationResult, Migrator
from sluice_checkpoints.migrate.ports import MigrationPorts, MigrationRequest
from sluice_checkpoints.protocol.rows import Item

Asked = dict[str, Any]
Answer = Callable[[str, Asked], Any]
QUIET = 15.0


def error(code: str, message: str = "said the service", **more: Any) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}} | more, "Operation")


@dataclass
class Between:
    """A client in which every call, numbered from 0, goes by `answer`; that may make it, change it, or raise.

    Attributes:
        log: operation and request of each call.
    """

    api: Any
    answer: Callable[[int, str, Asked, Answer], Any] = lambda _number, operation, asked, make: make(operation, asked)
    log: list[tuple[str, Asked]] = field(default_factory=list)

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**asked: Any) -> Any:
            self.log.append((operation, asked))
            return self.answer(len(self.log) - 1, operation, asked, self.make)

        return call

    def make(self, operation: str, asked: Asked) -> Any:
        return getattr(self.api, operation)(**asked)


def fault(kind: str, at: int) -> Callable[[int, str, Asked, Answer], Any]:
    """The process dies before call `at`, or after it; or only that call's reply is lost."""
    dead = False

    def answer(number: int, operation: str, asked: Asked, make: Answer) -> Any:
        nonlocal dead
        if dead or (kind == "crash before" and number == at):
            dead = True
            raise Crash
        try:
            return make(operation, asked)
        finally:  # also where the answer is an error
            if number == at and kind == "crash after":
                dead = True
                raise Crash
            if number == at and kind == "lost":
                raise ReadTimeoutError(endpoint_url="https://dynamodb")

    return answer


class ServiceBench:
    """A case in DynamoDB under names never used before, and migrators of it in virtual time. As `bench.Bench`, but only the stream is in memory.

    Attributes:
        seconds: the clock of every process, and of the stream.
    """

    def __init__(self, api: Any, case: Case) -> None:
        name = uuid4().hex[:12]
        self.api, self.seconds = api, 0.0
        self.case = replace(case, table=f"{name}-{case.table}")
        self.stage = Stage(lambda: 1_700_000_000_000 + round(self.seconds * 1000))
        self.request = MigrationRequest(self.case.table, f"{name}-target", quiet_seconds=QUIET)
        self.tables = self.case.make(self.stage, self.case.table)
        self._tokens = count(1)
        for table, (keys, _) in self.tables.items():
            _create(api, table, keys)
        self._put()

    def migrator(self, between: Any = None, **patience: Any) -> Migrator:
        api = between or self.api
        waits = Patience(**{"clock": lambda: self.seconds, "sleep": self.sleep, "dice": lambda: 1.0, **patience})
        return Migrator(
            self.request,
            MigrationPorts(DynamoSources(api, waits), self.stage.stream, DynamoTargets(api, waits), waits.clock, waits.sleep, self._token),
        )

    def run(self, between: Any = None, **patience: Any) -> MigrationResult:
        return self.migrator(between, **patience).run()

    def move(self) -> None:
        self.case.checkpoint(self.tables, self.case, self.stage.stream.put_in(self.stage.one, b"later"))
        self._put()

    def target(self) -> dict[str, Item]:
        return {row["id"]: row for row in DynamoTable(self.request.target, self.api).scan()}

    def end_state(self) -> dict[str, Item]:
        return settled(self.target())

    def sources(self) -> dict[str, list[str]]:
        return {table: sorted(map(_line, DynamoSources(self.api).scan(table))) for table in self.tables}

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def _token(self) -> str:
        return f"token-{next(self._tokens)}"

    def _put(self) -> None:
        for table, (_, rows) in self.tables.items():
            for row in rows:
                self.api.put_item(TableName=table, Item=row)


def _line(row: Any) -> str:
    ordered = {name: {tag: sorted(value) if tag == "SS" else value for tag, value in tagged.items()} for name, tagged in row.items()}
    return json.dumps(ordered, sort_keys=True, default=repr)


def _create(api: Any, name: str, keys: KeySchema) -> None:
    api.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key.name, "AttributeType": key.type} for key in keys],
        KeySchema=[{"AttributeName": key.name, "KeyType": key.kind} for key in keys],
        BillingMode="PAY_PER_REQUEST",
    )
