"""The pages about the operator say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sluice_lab.generate import markdown, reference
from sluice_operator.election import thread
from sluice_operator.election.candidate import ElectionTimings
from sluice_operator.observe.parse import EXITS, STUCK
from sluice_operator.plan.advice import FAILURES, OTHERS, WORDS, advised
from sluice_operator.plan.conditions import LONGEST, VERDICTS
from sluice_operator.plan.events import Reason
from sluice_operator.plan.rules import RULES
from sluice_operator.settings import Settings
from sluice_operator.state.status import Phase

ROOT = Path(__file__).parents[3]
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("operations", "monitoring", "rules", "runbooks", "reference/status")}
PAGE = PAGES["operations"] + PAGES["reference/status"]
SOURCES = "\n".join(path.read_text() for path in (ROOT / "operator" / "sluice_operator").rglob("*.py"))


def rows(heading: str, number: int = 1) -> list[list[str]]:
    section = re.split(r"(?m)^## ", PAGE.split(f"\n## {heading}\n", 1)[1])[0]
    tables = re.findall(r"(?m)(?:^\|.*\n)+", section)
    return [[cell.strip().strip("`") for cell in line.strip().strip("|").split("|")] for line in tables[number - 1].splitlines()[2:]]


def firsts(heading: str, number: int = 1) -> list[str]:
    return [row[0] for row in rows(heading, number)]


def test_generated_parts_are_what_the_code_says() -> None:
    """Else: `make generate`."""
    for name, text in PAGES.items():
        assert reference.filled(text) == text, name
    parts = [part for text in PAGES.values() for _, part, _ in markdown.PART.findall(text)]
    assert sorted(parts) == sorted(reference.PARTS)


def test_every_rule_names_the_phases_it_ends_in() -> None:
    known = {rule.__name__: reference.phases(rule) for rule in RULES}
    assert known["release"] == [Phase.DELETING]
    assert known["migrate"] == [Phase.PENDING, Phase.MIGRATING, Phase.FAILED]
    assert known["running"] == [Phase.PENDING, Phase.STARTING, Phase.RUNNING, Phase.DRAINING, Phase.IDLE]
    assert all(known.values())
    assert {phase for phases in known.values() for phase in phases} == set(Phase)


def test_every_event_has_its_line() -> None:
    assert firsts("Events") == [reason.value for reason in Reason]


def test_every_phase_and_every_condition_has_its_line() -> None:
    assert firsts("Status") == [phase.value for phase in Phase]
    assert firsts("Status", 2) == [kind for kind, _ in VERDICTS]


def test_every_annotation_has_its_line() -> None:
    """Labels are in docs/interfaces.md."""
    labels = {"consumer", "pool", "role", "attempt", "migration", "position", "class"}
    used = {name for name in re.findall(r"(?:sluice\.dev|\{GROUP\})/([a-z-]+)", SOURCES) if name not in {*labels, "operator", "v"}}
    assert {name.removeprefix("sluice.dev/") for name in firsts("Annotations")} == used


def test_every_exit_code_has_its_line() -> None:
    named = {int(row[0]): row[2] for row in rows("Exit codes") if row[0].isdigit()}
    assert named == {**EXITS, thread.LOST_LEADERSHIP: "deposed"}


def test_the_election_takes_as_long_as_it_says() -> None:
    terms = ElectionTimings()
    assert firsts("Replicas and the election")[0].endswith("(exit 70)")
    seconds = [row[1] for row in rows("Replicas and the election")]
    assert seconds == [f"{terms.deadline}", f"{terms.duration}", f"{terms.duration + terms.retry}, at most 20", f"{terms.retry}"]
    assert f"port {Settings().port}" in PAGES["monitoring"]


def test_every_reason_a_pod_is_stuck_by_has_advice() -> None:
    told = {*STUCK.values(), *EXITS.values(), "Unschedulable", "OOMKilled", "Evicted", "Killed", "DriverLost", "Forced", "Failed"}
    assert told <= set(FAILURES)


@pytest.mark.parametrize("message", ["row 'x' is unknown", "row 'x' is unknown.", "", "x" * 5000])
def test_a_message_ends_with_what_to_do(message: str) -> None:
    """However long it is: the advice is what a condition is read for."""
    said = advised("MigrationFailed", message, stalled=True)
    assert said.endswith(f"{FAILURES['MigrationFailed'].do}.")
    assert said.startswith(message[:WORDS].rstrip("."))
    assert ("…" in said) == (len(message) > WORDS), "what is cut off is marked"
    assert len(said) <= LONGEST


def test_a_stalled_resource_always_says_what_to_do() -> None:
    said = advised("Odd", "something odd", stalled=True)
    assert said == f"something odd. {OTHERS.do}."
    assert advised("Odd", said, stalled=True) == said
    assert advised("Evicted", "the node was drained") == "the node was drained"
    assert all(len(advice.do) + WORDS + 3 <= LONGEST for advice in FAILURES.values())
