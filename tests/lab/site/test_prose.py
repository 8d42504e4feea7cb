"""What people read keeps the habits of CONTRIBUTING.md, "Words"."""

from __future__ import annotations

import pytest

from sluice_lab.places import REPO
from sluice_lab.site import plurals, prose, prose_of_code
from sluice_lab.site.sentences import habits, said

LONG = " ".join(["word"] * 31)
REFUSED = [  # a sentence for each pattern of habits.toml, in its order
    "It waits meanwhile.",
    "It works anew.",
    "Sluice retries by itself.",
    "The youngest pod wins.",
    "The stream is at rest.",
    "It waits for the one before.",
    "The driver goes on.",
    "It needs a person.",
    "Here one has to look.",
    "Use one's own account.",
    "A row tells the batch.",
    "It stands in the table.",
    "The last words of a driver.",
    "Who needs more, reads it.",
    "A line a letter.",
    "The place of a shard.",
    "5s is no number of seconds.",
    "It holds also if it is idle.",
]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{n} records", True),
        ("{len(a)} records of {len(b)} shards", True),
        ("{n:,} dead letters", True),
        ("batch {b.number} of {n} shards", True),
        ("{done} of {n} shards", False),
    ],
)
def test_a_plural_after_a_number_that_may_be_one_is_found(text: str, *, wrong: bool) -> None:
    assert bool(list(plurals.findings(f'said = f"{text}"'))) is wrong


def test_every_module_of_ours_is_read_for_its_docstrings() -> None:
    found = {str(path.relative_to(REPO)) for part in ("consumer", "operator", "lab") for path in (REPO / part).rglob("*.py")}
    assert set(prose_of_code.documented()) == found


def test_the_commands_and_messages_of_every_program_are_read() -> None:
    found = {name for name, _ in prose.commands()}
    assert {"sluice status", "python -m sluice_checkpoints dead-letters show", "python -m sluice_consumer redrive"} <= found
    assert {"consumer/sluice_consumer/embedded.py", "consumer/sluice_checkpoints/diagnose/rules.py"} <= {*prose_of_code.modules()}
    assert all((REPO / name).exists() for name in habits().lists)


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}.",
        "Refused: no such consumer; the message says why.",
        "* One that is good.\n* It needs a person.",
        "| a | b |\n|---|---|\n| fine | it goes on |",
    ],
)
def test_a_broken_habit_is_found(text: str) -> None:
    assert len(prose.findings(text)) == 1


@pytest.mark.parametrize(("better", "text"), list(zip(habits().instead.values(), REFUSED, strict=True)))
def test_each_pattern_refuses_its_sentence(better: str, text: str) -> None:
    """A pattern that can never match would hold nothing. Capitals do not matter, but where a pattern says so."""
    assert [each.endswith(f", write {better}: {text}") for each in said(text)] == [True]


MODULE = '''
"""Works.

It waits
meanwhile.

Attributes:
    first, second: good. It goes on
        for ever.
    *rest: good; it stands in a row; x

* An item anew.
* docs/dead-letters.md, "Where dead letters go", is a heading.
"""
# It waits
# meanwhile.
x = 1  # noqa: E501 - it goes on
y = f()  # type: ignore[arg-type]  # it goes on
'''


def test_a_broken_habit_in_a_docstring_or_a_comment_is_found_at_its_line() -> None:
    assert [each.partition(", write")[0] for each in prose_of_code.findings(MODULE)] == [
        "4: 'meanwhile'",
        "8: 'goes on'",
        "10: 'stands in'",
        "12: 'anew'",
        "15: 'meanwhile'",
        "17: 'goes on'",
        "18: 'goes on'",
    ]
