"""Whatever is asked, and whatever is in the tables: the command line ends with one of its exit codes and a document, and changes no source.

Tables of every known system are damaged at random in DynamoDB Local, with options that mean nothing among the ordinary ones. Only the stream and the
time are in-memory fakes. `SLUICE_FUZZ` sets the number of examples.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from migrating.cases import CASES
from migrating.stage import Case, Stage, Tables

from sluice_checkpoints.aws.retry import Patience
from sluice_checkpoints.cli import diagnose, export, migrate, show
from sluice_checkpoints.cli.diagnose import DiagnosePorts
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.dynamodb.source_tables import DynamoSources
from sluice_checkpoints.dynamodb.table import client
from sluice_checkpoints.formats.detect import FORMATS, WRITERS
from sluice_checkpoints.formats.snapshot import KeySchema, TableKey

EXAMPLES = int(os.environ.get("SLUICE_FUZZ", "40"))
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller example is not worth minutes of a service's time
OURS = (TableKey("id", "HASH", "S"),)
REFUSED = {"Refused", "OtherStream", "StreamNotFound"}
REASONS = {65: REFUSED, 75: {"SourceActive", "LeaseHeld"}}
FINDINGS, USAGE, SUCCESS = 1, 2, 0

# -- what may be stored ------------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["", "LATEST", "SHARD_END", "shardId-000000000001", "shardId-000000000009", "x" * 300, "5", "2026-13-01T00:00:00Z", "[red]"])
TEXTS = WORDS | st.text(st.characters(codec="utf-8"), max_size=12)
NUMBERS = st.sampled_from(["0", "-1", "1.5", "1e30", "9" * 38]) | st.integers(-(10**20), 10**20).map(str)
FLAT = st.one_of(
    TEXTS.map(lambda text: {"S": text}),
    NUMBERS.map(lambda number: {"N": number}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.binary(max_size=8).map(lambda data: {"B": data}),
    st.sets(st.text(st.characters(codec="ascii"), min_size=1, max_size=5), min_size=1, max_size=3).map(lambda some: {"SS": sorted(some)}),
    st.just({"NULL": True}),
)
MAPS = st.dictionaries(st.sampled_from(["at", "sequence", "millis", "x"]), FLAT, max_size=3)
VALUES = FLAT | st.lists(FLAT, max_size=3).map(lambda some: {"L": some}) | MAPS.map(lambda some: {"M": some})
KEYS = st.sampled_from(["consumer", "migration", "shard/shardId-000000000001", "shard/x", "bootstrap/p/0", "user-1", "Leader", "a:b:1:c"])
ATTRIBUTES = st.sampled_from([
    *("checkpoint", "leaseCounter", "checkpointSubSequenceNumber", "parentShardId", "childShardIds", "startingHashKey", "entityType", "leaseOwner"),
    *("sequenceNumber", "leaseExpiry", "Checkpoint", "LeaseTimeout", "AssignedTo", "SequenceNumber", "Finished", "pendingCheckpoint", "unknown"),
    *("start", "end", "children", "parents", "batch", "committed", "generation", "released", "state", "source", "risks", "format", "choices"),
])  # fmt: skip


@dataclass(frozen=True)
class Damage:
    """One change of one row: which table, row and attribute (by remainder, the last also by name), and what becomes of it (None: gone)."""

    table: int
    row: int
    attribute: str | int
    value: dict[str, Any] | None

    def apply(self, tables: Tables) -> None:
        """Changes the row; a key stays, for a row without it cannot be stored."""
        keys, rows = list(tables.values())[self.table % len(tables)]
        if not rows:
            return
        row = rows[self.row % len(rows)]
        name = self.attribute if isinstance(self.attribute, str) else sorted(row)[self.attribute % len(row)]
        if name in {key.name for key in keys}:
            row[name] = {"S": self.value["S"]} if self.value and self.value.get("S") else row[name]
        elif self.value is None:
            row.pop(name, None)
        else:
            row[name] = self.value


DAMAGE = st.builds(Damage, st.integers(0, 2), st.integers(0, 9), st.integers(0, 30) | ATTRIBUTES, VALUES | st.none())
STRANGERS = st.dictionaries(KEYS, st.dictionaries(ATTRIBUTES, VALUES, max_size=4), max_size=3)


@dataclass
class Scene:
    api: Any
    case: Case
    stage: Stage = field(default_factory=lambda: Stage(lambda: 1_700_000_000_000))
    seconds: float = 0.0

    def __post_init__(self) -> None:
        prefix = uuid4().hex[:10]
        self.case = replace(self.case, table=f"{prefix}-{self.case.table}")
        self.target = f"{prefix}-target"
        self.tables = self.case.make(self.stage, self.case.table)

    def store(self, name: str, keys: KeySchema, rows: list[Any]) -> None:
        self.api.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": key.name, "AttributeType": key.type} for key in keys],
            KeySchema=[{"AttributeName": key.name, "KeyType": key.kind} for key in keys],
            BillingMode="PAY_PER_REQUEST",
        )
        for row in rows:
            self.api.put_item(TableName=name, Item=row)

    def damage_target(self, damages: list[Damage]) -> None:
        rows = [dict(row) for row in DynamoSources(self.api).scan(self.target)]
        for damage in damages:
            damage.apply({self.target: (OURS, rows)})
        for row in rows:
            self.api.put_item(TableName=self.target, Item=row)

    def contents(self) -> dict[str, list[str]]:
        return {name: sorted(repr(sorted(row.items())) for row in DynamoSources(self.api).scan(name)) for name in self.tables}

    def exists(self, name: str) -> bool:
        return DynamoSources(self.api).key_schema(name) is not None

    def drop(self) -> None:
        for name in (*self.tables, self.target):
            if self.exists(name):
                self.api.update_table(TableName=name, DeletionProtectionEnabled=False)
                self.api.delete_table(TableName=name)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture(scope="module")
def worlds(dynamodb_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    seen: dict[str, Any] = {"endpoint": dynamodb_endpoint, "log": tmp_path_factory.mktemp("fuzz") / "log"}

    def timed(make: Any) -> Any:
        def world(options: Any, output: Any) -> Any:
            scene = seen["scene"]
            return replace(make(options, output), catalog=scene.stage.stream, clock=lambda: scene.seconds, sleep=scene.sleep)

        return world

    make_sight, make_export, shared = diagnose._sight, export._ports, cache(client)
    with pytest.MonkeyPatch.context() as patch:
        for module in (migrate, diagnose, export, show):
            patch.setattr(module, "client", shared)  # to make one takes longer than the command
        patch.setattr(migrate, "PATIENCE", Patience(clock=lambda: seen["scene"].seconds, sleep=lambda s: seen["scene"].sleep(s)))  # noqa: PLW0108 - of the scene at that time
        patch.setattr(migrate, "_ports", timed(migrate._ports))
        patch.setattr(export, "_ports", timed(lambda options, output: replace(make_export(options, output), records=None)))  # of a stream in memory
        patch.setattr(diagnose, "_sight", lambda options: DiagnosePorts(make_sight(options).sources, seen["scene"].stage.stream, None))
        yield seen


# -- what may be asked -------------------------------------------------------------------------------------------------------------

SECONDS = st.sampled_from(["0", "0.5", "1", "300", "nan", "inf", "-1", "1e300", "soon"])
TIMES = st.sampled_from(
    ["2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "1900-01-01T00:00:00+01:00", "noon", "0001-01-01T00:00:00+14:00", "2020-01-01"]
)
NONSENSE: st.SearchStrategy[list[str]] = st.one_of(
    st.tuples(st.just("--region"), st.sampled_from(["", "eu west", "-", "☃"])).map(list),
    st.tuples(st.sampled_from(["--dynamodb-endpoint", "--kinesis-endpoint"]), TEXTS | st.sampled_from(["localhost:1", "http://", "http://[::1"])).map(
        list
    ),
    st.tuples(st.sampled_from(["--source", "--target", "--table", "--to"]), TEXTS.filter(lambda text: not text.startswith("-"))).map(list),
)
ORDINARY: dict[str, st.SearchStrategy[list[str]]] = {
    "format": st.sampled_from(["auto", *(f.name for f in FORMATS)]).map(lambda name: ["--format", name]),
    "unstarted": st.sampled_from(["now", "trim-horizon"]).map(lambda name: ["--unstarted", name]),
    "quiet": SECONDS.map(lambda number: ["--quiet-seconds", number]),
    "lease": SECONDS.map(lambda number: ["--lease-seconds", number]),
    "time": TIMES.map(lambda moment: ["--timestamp", moment]),
    "dry": st.just(["--dry-run"]),
    "initial": st.sampled_from(["latest", "trim-horizon"]).map(lambda name: ["--initial-position", name]),
}
OPTIONS = {
    "migrate": ["format", "unstarted", "quiet", "lease", "time", "dry"],
    "diagnose": ["format", "initial"],
    "export": ["quiet", "lease", "dry"],
    "show": [],
}


@st.composite
def arguments(draw: st.DrawFn, command: str) -> list[str]:
    """Options beside the required ones; every fifth time one that means nothing."""
    names = draw(st.lists(st.sampled_from(OPTIONS[command]), unique=True, max_size=3)) if OPTIONS[command] else []
    chosen = [word for name in names for word in draw(ORDINARY[name])]
    return chosen + (draw(NONSENSE) if draw(st.integers(0, 4)) == 0 else [])


def invoke(worlds: dict[str, Any], command: str, *more: str, log: str | None = None) -> Result:
    """Runs a command on the scene; of options given twice the last counts."""
    scene: Scene = worlds["scene"]
    required = {
        "migrate": ["--source", scene.case.table, "--stream", "orders", "--target", scene.target],
        "diagnose": ["--table", scene.case.table, "--stream", "orders"],
        "export": ["--table", scene.target, "--to", scene.case.table, "--stream", "orders"],
        "show": ["--table", scene.target],
    }[command]
    where = ["--region", "us-east-1", "--dynamodb-endpoint", worlds["endpoint"]]
    environment = {"SLUICE_TERMINATION_LOG": log or str(worlds["log"])}
    return CliRunner(env=environment).invoke(main, [command, *required, *where, "--json", *more])


def check(command: str, result: Result) -> None:
    """A documented exit code, its document, and nothing else on stdout; a 1 is a finding of `diagnose`."""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stderr, result.stderr
    assert result.exit_code in {SUCCESS, USAGE, *REASONS} | ({FINDINGS} if command == "diagnose" else set()), result.output
    if result.exit_code == USAGE:
        assert (result.stdout, "Usage" in result.stderr) == ("", True)
        return
    document = json.loads(result.stdout)
    if result.exit_code in REASONS:
        assert document["reason"] in REASONS[result.exit_code]
        assert document["message"]
    assert document.get("loss", False) is (result.exit_code == FINDINGS)


# -- the properties ----------------------------------------------------------------------------------------------------------------

CHANGES_OF_STREAM = {
    "none": lambda _stage: None,
    "gone": lambda stage: setattr(stage.stream, "exists", False),
    "made again": lambda stage: stage.stream.recreate(2),
    "split": lambda stage: stage.stream.split(stage.one),
    "expired": lambda stage: stage.stream.expire_shard(stage.zero),
}


@pytest.mark.slow
@settings(max_examples=EXAMPLES, phases=PHASES)
@given(data=st.data())
def test_a_damaged_source_ends_with_a_document_and_is_not_changed(worlds: dict[str, Any], dynamodb_api: Any, data: st.DataObject) -> None:
    scene = worlds["scene"] = Scene(dynamodb_api, data.draw(st.sampled_from(CASES)))
    for damage in data.draw(st.lists(DAMAGE, max_size=3)):
        damage.apply(scene.tables)
    for name, (keys, rows) in scene.tables.items():
        scene.store(name, keys, rows)
    strangers = data.draw(st.none() | STRANGERS)
    if strangers is not None:
        scene.store(scene.target, OURS, [{"id": {"S": key}} | row for key, row in strangers.items()])
    CHANGES_OF_STREAM[data.draw(st.sampled_from(sorted(CHANGES_OF_STREAM)))](scene.stage)
    before, log = scene.contents(), data.draw(st.sampled_from([None, "/nowhere/log"]))
    for command in data.draw(st.permutations(["migrate", "diagnose"])):
        result = invoke(worlds, command, *data.draw(arguments(command)), log=log)
        check(command, result)
        assert scene.contents() == before
        if command == "migrate" and result.exit_code == 65 and strangers is None:
            assert not scene.exists(scene.target)
    scene.drop()


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2, phases=PHASES)
@given(data=st.data())
def test_a_damaged_table_of_sluice_ends_with_a_document(worlds: dict[str, Any], dynamodb_api: Any, data: st.DataObject) -> None:
    scene = worlds["scene"] = Scene(dynamodb_api, data.draw(st.sampled_from([case for case in CASES if case.name != "Sluice"])))
    for name, (keys, rows) in scene.tables.items():
        scene.store(name, keys, rows)
    kind = data.draw(st.sampled_from(["migrated", "migrated", "migrated", "strangers", "another key"]))
    if kind == "migrated":
        assert invoke(worlds, "migrate").exit_code == 0
        scene.damage_target(data.draw(st.lists(DAMAGE, max_size=2)))
    elif kind == "strangers":
        scene.store(scene.target, OURS, [{"id": {"S": key}} | row for key, row in data.draw(STRANGERS).items()])
    else:
        scene.store(scene.target, (TableKey("leaseKey", "HASH", "S"),), [])
    for command in data.draw(st.permutations(["show", "export", "migrate"])):
        format_ = ["--format", data.draw(st.sampled_from(sorted(WRITERS)))] if command == "export" else []
        check(command, invoke(worlds, command, *format_, *data.draw(arguments(command)), log=data.draw(st.sampled_from([None, "/nowhere/log"]))))
    scene.drop()
