from __future__ import annotations

from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_checkpoints.formats.detect import FORMATS, choose, take_snapshot
from sluice_checkpoints.formats.snapshot import KeySchema, TableKey
from sluice_lab.fakes.migration import MemorySources

KCL, GO, SHARD, OURS = ((TableKey(name, "HASH", "S"),) for name in ("leaseKey", "ShardID", "Shard", "id"))
NIFI = (TableKey("streamName", "HASH", "S"), TableKey("shardId", "RANGE", "S"))


@pytest.mark.parametrize(
    ("schemas", "name"),
    [
        ({"app": KCL}, "kcl"),
        ({"app": NIFI}, "nifi"),
        ({"app": NIFI, "app_migration": NIFI}, "nifi"),
        ({"app": KCL, "app_migration": NIFI}, "nifi"),
        ({"app_migration": NIFI}, "nifi"),
        ({"app": KCL, "app_migration": KCL}, "kcl"),
        ({"app": GO}, "vmware-go-kcl"),
        ({"app": SHARD}, "kinsumer"),
        ({"app": OURS}, "sluice"),
    ],
)
def test_the_format_is_known_by_the_keys_of_its_tables(schemas: dict[str, KeySchema], name: str) -> None:
    """A KCL table beside NiFi's half-made one is a migration of NiFi's that was interrupted."""
    assert choose("auto", "app", schemas).name == choose(name, "app", schemas).name == name


def test_a_kcl_table_may_be_named_so_though_nifi_had_begun_to_copy_it() -> None:
    assert choose("kcl", "app", {"app": KCL, "app_migration": NIFI}).name == "kcl"


@pytest.mark.parametrize(
    "keys",
    [
        (TableKey("leaseKey", "HASH", "N"),),
        (TableKey("leaseKey", "HASH", "S"), TableKey("shardId", "RANGE", "S")),
        (TableKey("streamName", "HASH", "S"),),
        (TableKey("customer", "HASH", "S"), TableKey("order", "RANGE", "N")),
    ],
)
def test_a_table_of_an_unknown_key_is_refused_naming_it(keys: KeySchema) -> None:
    for name in ("auto", "kcl"):
        with pytest.raises(Refused) as refused:
            choose(name, "app", {"app": keys})
        assert ", ".join(map(str, keys)) in str(refused.value)


@pytest.mark.parametrize(("named", "keys", "found"), [("nifi", KCL, "kcl"), ("kcl", NIFI, "nifi"), ("kinsumer", GO, "vmware-go-kcl")])
def test_a_named_format_that_the_key_contradicts_is_refused(named: str, keys: KeySchema, found: str) -> None:
    with pytest.raises(Refused, match=f"of format {found}, but format {named} was named"):
        choose(named, "app", {"app": keys})


def test_companions_are_looked_for_only_beside_tables_that_may_have_them() -> None:
    """Every table asked for needs a permission."""
    asked: list[str] = []
    sources = MemorySources({"app": (GO, [])}, lambda _when, operation, table: asked.append(f"{operation} {table}"))
    take_snapshot(sources, "app")
    assert asked == ["describe source app", "scan source app"]


def test_a_table_beside_the_source_is_read_when_it_is_its_formats() -> None:
    tables: dict[str, Any] = {f"app_{name}": (keys, []) for name, keys in (("checkpoints", SHARD), ("clients", KCL), ("metadata", GO), ("other", GO))}
    assert set(take_snapshot(MemorySources(tables), "app_checkpoints")[1].tables) == {"app_checkpoints", "app_clients", "app_metadata"}


def test_a_table_that_was_made_anew_between_two_looks_is_found() -> None:
    """NiFi's rename: the main table was not there yet, and the half-made one is there no more."""
    sources = MemorySources({})

    def rename(_when: str, operation: str, table: object) -> None:
        if (operation, table) == ("describe source", "app_migration"):
            sources.tables["app"] = (NIFI, [])

    sources.hook = rename
    assert take_snapshot(sources, "app")[0].name == "nifi"


def test_the_right_name_is_offered_for_kinsumers_application() -> None:
    """People know the application's name; the table has another."""
    with pytest.raises(Refused, match="there is no source table app; kinsumer's is called app_checkpoints"):
        take_snapshot(MemorySources({"app_checkpoints": (SHARD, [])}), "app")


def test_every_format_has_one_name() -> None:
    assert sorted(f.name for f in FORMATS) == ["kcl", "kinsumer", "nifi", "sluice", "vmware-go-kcl"]
