"""What people read keeps the habits of CONTRIBUTING.md, "Words"."""

from __future__ import annotations

import pytest

from sluice_lab.site import prose

LONG = " ".join(["word"] * 31)


@pytest.mark.parametrize("page", prose.pages())
def test_a_page_keeps_the_habits(page: str) -> None:
    """README, docs, and those of examples and charts; none is left out."""
    assert prose.findings((prose.REPO / page).read_text()) == []


def test_helps_fields_and_messages_keep_the_habits() -> None:
    """A command begins with its verb, a field with what it is."""
    assert [*prose.helps(), *prose.fields(), *prose.messages()] == []


def test_the_commands_of_every_program_are_read() -> None:
    """The supervisor's own help as well, and what a group of commands says of itself."""
    found = {name for name, _ in prose.commands()}
    assert {"sluice status", "sluice run", "python -m sluice_checkpoints migrate", "python -m sluice_checkpoints dead-letters show"} <= found
    assert {"sluice", "python -m sluice_checkpoints", "python -m sluice_checkpoints dead-letters"} <= found
    assert {"python -m sluice_consumer", "python -m sluice_consumer dev", "python -m sluice_consumer redrive"} <= found


def test_every_message_of_the_consumer_is_read() -> None:
    """But for lists of names and patterns, each of which is there."""
    found = prose.modules()
    assert {"consumer/sluice_consumer/embedded.py", "consumer/sluice_checkpoints/diagnose/rules.py"} <= set(found)
    assert not set(found) & set(prose.habits().lists)
    assert all((prose.REPO / name).exists() for name in (*found, *prose.habits().lists))


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}.",
        "Refused: no such consumer; the message says why.",
        "It waits meanwhile.",
        "Sluice retries by itself.",
        "* One that is good.\n* It needs a person.",
        "| a | b |\n|---|---|\n| fine | it goes on |",
        "Who needs more, reads it.",
        "A line a letter.",
    ],
)
def test_a_broken_habit_is_found(text: str) -> None:
    """Once, in a paragraph, an item or a cell."""
    assert len(prose.findings(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{LONG} meanwhile\n```",
        f"`{LONG}` is code.",
        f"# {LONG}",
        "Who maintains it?",
        "It scales in place.",
        "| a | b |\n|---|---|\n| x: y; z: w | `go on` |",
        f"{' '.join(['word'] * 20)}. {' '.join(['Word'] * 20)}.",
        "See [a page](x.md#the-one-before).",
    ],
)
def test_what_is_no_sentence_of_ours_is_left_alone(text: str) -> None:
    """Code, headings, lists in cells, addresses of links."""
    assert prose.findings(text) == []


def test_a_finding_names_the_line_and_what_to_write() -> None:
    """The first line of its paragraph."""
    assert prose.findings("Fine.\n\nIt works\nanew.") == ["3: 'anew', write 'again': It works anew."]
