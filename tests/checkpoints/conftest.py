"""A world of in-memory fakes for migrations, and the dumps of real tables."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints.formats.snapshot import RawItem
from sluice_checkpoints.stream.model import Shard, ShardList, ShardPlace, StreamIdentity

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "sim")]  # `migrating`, and `simulation.turnstile`: tests have no packages (importlib mode)

from migrating.bench import Bench  # noqa: E402 - the path comes first
from migrating.cases import kcl_row  # noqa: E402

GOLDEN = HERE / "golden"


@dataclass(frozen=True)
class Golden:
    name: str
    document: dict[str, Any]

    @property
    def rows(self) -> list[RawItem]:
        return [{name: _bytes(tagged) for name, tagged in item.items()} for item in self.document["tables"][self.name]["items"]]

    @property
    def stream(self) -> dict[str, Any]:
        return next(iter(self.document["streams"].values()))

    @property
    def stands(self) -> dict[str, Any]:
        """Where each shard stands, as the dump's authors derived it: a list or None."""
        return {shard: derived["stored_position"] for shard, derived in self.stream["derived"].items()}

    def describe(self) -> StreamIdentity:
        summary = self.stream["summary"]
        created = round(summary["StreamCreationTimestamp"] * 1000)
        return StreamIdentity(summary["StreamName"], summary["StreamARN"], created, 86_400_000, "ACTIVE")

    def list_shards(self) -> ShardList:
        return ShardList(tuple(map(_shard, self.stream["shards"])), 1_795_230_000_000)

    def disowned(self, places: Iterable[ShardPlace]) -> dict[ShardPlace, str]:
        del places
        return {}


def _bytes(tagged: dict[str, Any]) -> dict[str, Any]:
    return {"B": base64.b64decode(tagged["B"])} if "B" in tagged else tagged


def _shard(said: dict[str, Any]) -> Shard:
    parents = tuple(said[k] for k in ("ParentShardId", "AdjacentParentShardId") if said.get(k))
    hashes, numbers = said["HashKeyRange"], said["SequenceNumberRange"]
    return Shard(
        said["ShardId"],
        parents,
        int(hashes["StartingHashKey"]),
        int(hashes["EndingHashKey"]),
        numbers["StartingSequenceNumber"],
        numbers.get("EndingSequenceNumber"),
    )


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def lease() -> Callable[..., dict[str, Any]]:
    return kcl_row


@pytest.fixture
def golden() -> Callable[[str], Golden]:
    return lambda name: Golden(name, json.loads((GOLDEN / f"{name}.json").read_text()))
