"""docs/runbooks.md has a runbook for every reason and every alert."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sluice_lab.generate.markdown import slug
from sluice_lab.generate.reference import ALERT, ALERTS, RUNBOOKS
from sluice_operator.plan.advice import FAILURES
from sluice_operator.plan.known_words import OF_PROGRAMS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "runbooks.md").read_text()
FIRST = ["By symptom", "By reason", "When to escalate"]
SECTIONS = {part.split("\n", 1)[0]: part for part in re.split(r"(?m)^## ", PAGE)[1:]}
SCREEN = re.compile(r"(?s)<!-- screen.*?<!-- end -->")


def test_every_reason_has_a_runbook() -> None:
    assert {reason for reasons in RUNBOOKS.values() for reason in reasons} == set(FAILURES)


def test_every_word_of_a_program_is_on_the_page() -> None:
    assert [word for word in sorted(OF_PROGRAMS) if f"`{word}`" not in PAGE] == []


def test_every_alert_leads_to_a_runbook() -> None:
    found = dict(ALERT.findall(ALERTS.read_text()))
    assert len(found) == ALERTS.read_text().count("- alert: ")
    assert set(found.values()) <= {slug(heading) for heading in (*RUNBOOKS, "By reason")}


def test_every_alert_is_on_the_page_by_its_name() -> None:
    """Somebody who is woken searches for it; those that fire for any reason stand beside the table of all reasons."""
    assert [name for name, _ in ALERT.findall(ALERTS.read_text()) if f"`{name}`" not in PAGE] == []


def test_the_page_has_the_runbooks_in_their_order() -> None:
    assert list(SECTIONS) == [*FIRST, *RUNBOOKS]


@pytest.mark.parametrize("heading", RUNBOOKS)
def test_a_runbook_says_what_it_means_what_to_do_when_it_is_over_and_when_to_ask(heading: str) -> None:
    """A paragraph, then steps or a table, then the two ends."""
    text = SCREEN.sub("", SECTIONS[heading].split("\n", 1)[1].split("\n### ", 1)[0])
    meaning, *done, last = re.split(r"\n{2,}", text.strip())
    assert not re.match(r"1\. |\||\*", meaning)
    assert any(re.match(r"1\. |\| ", part) for part in done)
    assert re.findall(r"\*\*(.+?)\*\*", last) == ["Over when", "Escalate when"]


@pytest.mark.parametrize("heading", [heading for heading in RUNBOOKS if "<!-- screen" in SECTIONS[heading]])
def test_a_screen_of_a_runbook_shows_its_reason(heading: str) -> None:
    assert any(reason in "".join(SCREEN.findall(SECTIONS[heading])) for reason in RUNBOOKS[heading])
