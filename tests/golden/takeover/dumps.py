"""Dumps of tables that other systems wrote (format golden-table/1), and their copies in a DynamoDB.

The project has dumps of all four systems. SLUICE_GOLDEN names a folder with more; all that are there are taken, by format and not by name.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from takeover.replay import Recorded

FORMAT = "golden-table/1"
ROOT = Path(__file__).parents[3]
OURS = ROOT / "tests" / "checkpoints" / "golden"
Items = list[dict[str, Any]]


def folders() -> list[Path]:
    more = os.environ.get("SLUICE_GOLDEN")
    return [OURS, *([Path(more)] if more else [])]


@dataclass(frozen=True)
class Dump:
    """One dump; `siblings` is where a dump that it was made of can be found."""

    name: str
    document: Mapping[str, Any]
    siblings: tuple[Path, ...] = ()

    @property
    def tables(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.document["tables"]
        return found

    @property
    def source(self) -> str:
        """The table that is named on the command line; an interrupted migration of NiFi's may have deleted it."""
        by_length = sorted(self.tables, key=len)
        return next((name for name in by_length if name.endswith("_checkpoints")), by_length[0].removesuffix("_migration"))

    @cached_property
    def streams(self) -> dict[str, Recorded]:
        return {name: Recorded(s["summary"], s["shards"], s["records"]) for name, s in self.document["streams"].items()}

    def made_of(self) -> Dump:
        name = self.document["source_dump"]
        path = next((folder / name for folder in self.siblings if (folder / name).exists()), Path(name))
        return read(path, self.siblings)


def read(path: Path, siblings: tuple[Path, ...] = ()) -> Dump:
    return Dump(path.stem, json.loads(path.read_text()), siblings)


def found(folders: Iterable[Path]) -> list[Dump]:
    """Every dump in these folders; a file that is in two of them, byte for byte, counts once."""
    siblings = tuple(folders)
    files = {(path.name, path.read_bytes()): path for folder in reversed(siblings) for path in sorted(folder.glob("*.json"))}
    dumps = [read(path, siblings) for path in sorted(files.values(), key=lambda path: path.name)]
    return [dump for dump in dumps if dump.document.get("format") == FORMAT]


class Tables:
    def __init__(self, dump: Dump, endpoint: str) -> None:
        self._client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1")
        self._prefix = f"{uuid4().hex[:8]}-"
        self._names = [self.named(name) for name in dump.tables]
        for name, table in dump.tables.items():
            self._create(self.named(name), table["describe"])
            for item in table["items"]:
                self._client.put_item(TableName=self.named(name), Item={key: _bytes(value) for key, value in item.items()})

    def named(self, name: str) -> str:
        return self._prefix + name

    def contents(self) -> dict[str, Items]:
        scanned = {name: self._client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True) for name in self._names}
        return {name: sorted((item for page in pages for item in page["Items"]), key=repr) for name, pages in scanned.items()}

    def _create(self, name: str, described: Mapping[str, Any]) -> None:
        keys = described["KeySchema"]
        types = [a for a in described["AttributeDefinitions"] if a["AttributeName"] in {key["AttributeName"] for key in keys}]
        self._client.create_table(TableName=name, KeySchema=keys, AttributeDefinitions=types, BillingMode="PAY_PER_REQUEST")


def _bytes(tagged: Mapping[str, Any]) -> dict[str, Any]:
    """An attribute with its bytes as bytes; JSON has them in base64."""
    ((tag, value),) = tagged.items()
    match tag:
        case "B":
            return {tag: base64.b64decode(value)}
        case "BS":
            return {tag: [base64.b64decode(inner) for inner in value]}
        case "M":
            return {tag: {key: _bytes(inner) for key, inner in value.items()}}
        case "L":
            return {tag: [_bytes(inner) for inner in value]}
        case _:
            return {tag: value}
