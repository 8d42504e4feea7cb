"""The checks of what a configuration names: modules are looked for in their sources, then imported."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.checks import local
from sluice_consumer.checks.model import CheckOutcome, StartFacts
from sluice_consumer.process import configmap_code

LONG = 120.0


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StartFacts:
    (tmp_path / "mine_fine.py").write_text("def upsert(rows, part): ...\n")
    (tmp_path / "mine_broken.py").write_text("def upsert(rows, part): ...\nraise KeyError('DATABASE_URL')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    return StartFacts(tmp_path / "consumer.json", LONG, {})


def checked(facts: StartFacts, entrypoint: str, **args: Any) -> tuple[CheckOutcome, str]:
    pipeline = {"entrypoint": entrypoint, "args": args}
    facts.path.write_text(json.dumps({"stream": {"name": "s", "region": "us-east-1"}, "checkpoints": {"table": "abc"}, "pipeline": pipeline}))
    assert local.config(facts).outcome is CheckOutcome.OK
    finding = local.entrypoint(facts)
    return finding.outcome, finding.message


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"until": "noon"}, r"--until \(tip or a time\): 'noon' is not an ISO 8601 time"),
        ({"until": "2026-01-01T01:00:00+01:00"}, "until.timestamp is not after start.timestamp"),
        ({"until": "2026-01-02T00:00:00Z"}, None),
        ({"until": "tip"}, None),
        ({}, "until.timestamp is not after start.timestamp"),
    ],
)
def test_the_end_that_options_name_is_checked_with_the_start(facts: StartFacts, options: dict[str, Any], says: str | None) -> None:
    start = {"position": "AT_TIMESTAMP", "timestamp": "2026-01-01T00:00:00Z"}
    given = {"stream": {"name": "s", "region": "us-east-1"}, "checkpoints": {"table": "abc"}, "pipeline": {"entrypoint": "m:f"}, "start": start}
    facts.path.write_text(json.dumps(given | ({} if options else {"until": {"timestamp": "2025-12-31T00:00:00Z"}})))
    asked = replace(facts, **options)
    if says is None:
        assert local.config(asked).outcome is CheckOutcome.OK
        assert asked.given.until is not None
        return
    with pytest.raises(Refused, match=says):
        local.config(asked)


@pytest.mark.parametrize(
    ("region", "endpoints", "outcome"),
    [
        ("eu-west-1", {}, CheckOutcome.OK),
        ("eu-wets-1", {}, CheckOutcome.WARNING),
        ("local", {"kinesisEndpoint": "http://localhost:1", "dynamodbEndpoint": "http://localhost:1"}, CheckOutcome.OK),
    ],
)
def test_a_region_that_no_partition_has_is_named_before_its_hosts_are_waited_for(
    facts: StartFacts, region: str, endpoints: dict[str, str], outcome: CheckOutcome
) -> None:
    """A warning: AWS may have opened it since. An emulator may have any."""
    stream = {"name": "orders", "region": region, **endpoints}
    facts.path.write_text(json.dumps({"stream": stream, "checkpoints": {"table": "orders-sluice"}, "pipeline": {"entrypoint": "a:b"}}))
    found = local.config(facts)
    assert (found.outcome, "did you mean eu-west-1?" in found.message) == (outcome, outcome is CheckOutcome.WARNING)


def test_what_is_built_in_is_not_imported_again(facts: StartFacts) -> None:
    assert checked(facts, "sluice_consumer.pipelines:console") == (CheckOutcome.OK, "sluice_consumer.pipelines:console is built in")


@pytest.mark.parametrize(("sink", "name"), [("foreach", "function"), ("parquet", "transform")])
def test_a_function_that_a_sink_calls_is_looked_at_too(facts: StartFacts, sink: str, name: str) -> None:
    entrypoint = f"sluice_consumer.sinks:{sink}"
    assert checked(facts, entrypoint, **{name: "mine_fine:upsert"}) == (CheckOutcome.OK, "mine_fine:upsert can be imported")
    with pytest.raises(Refused, match=rf"^pipeline\.args\.{name}: module mine_fine has no upsrt$"):
        checked(facts, entrypoint, **{name: "mine_fine:upsrt"})
    with pytest.raises(Refused, match=rf"^pipeline\.args\.{name}: nothing_such:f: there is no module nothing_such;"):
        checked(facts, entrypoint, **{name: "nothing_such:f"})
    with pytest.raises(Refused, match=rf"^pipeline\.args\.{name}: mine_broken:upsert: its import raises KeyError: 'DATABASE_URL' "):
        checked(facts, entrypoint, **{name: "mine_broken:upsert"})


def test_an_argument_of_the_user_s_own_function_is_the_user_s(facts: StartFacts) -> None:
    assert checked(facts, "mine_fine:upsert", function="nothing_such:f")[0] is CheckOutcome.OK


def test_a_function_that_was_imported_well_is_not_imported_again_and_one_that_raised_is(facts: StartFacts, tmp_path: Path) -> None:
    """Forty members of a pool may have one function. What made an import fail may be over."""
    counted = tmp_path / "imports"
    (tmp_path / "mine_counted.py").write_text(f"open({str(counted)!r}, 'a').write('x')\ndef process(batch, info): ...\n")
    assert checked(facts, "mine_counted:process") == (CheckOutcome.OK, "mine_counted:process can be imported")
    assert checked(facts, "mine_counted:process") == (CheckOutcome.OK, "mine_counted:process was imported before")
    assert counted.read_text() == "x"
    with pytest.raises(Refused, match="DATABASE_URL"):
        checked(facts, "mine_broken:upsert")
    (tmp_path / "mine_broken.py").write_text("def upsert(rows, part): ...\n")
    assert checked(facts, "mine_broken:upsert") == (CheckOutcome.OK, "mine_broken:upsert can be imported")


def test_a_file_that_is_not_there(facts: StartFacts) -> None:
    with pytest.raises(Refused, match=r"^--config .*consumer\.json: No such file"):
        local.config(facts)


def test_modules_out_of_a_config_map_are_imported_from_a_copy_of_their_own(
    facts: StartFacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounted, scratch = tmp_path / "mounted", tmp_path / "scratch"
    mounted.mkdir()
    (mounted / "mine_mapped.py").write_text("def process(batch, info): ...\n")
    real = configmap_code.take
    monkeypatch.setattr(configmap_code, "take", lambda environment, temporary: real(environment, mounted, temporary))
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in (configmap_code.CONFIG_MAP, configmap_code.COPY):
        monkeypatch.setenv(name, "orders-code")
    assert checked(replace(facts, scratch=scratch), "mine_mapped:process") == (CheckOutcome.OK, "mine_mapped:process can be imported")
    assert (scratch / "sluice-source" / "mine_mapped.py").exists()
