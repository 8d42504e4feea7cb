"""What a container leaves for Kubernetes to show."""

from __future__ import annotations

import json

import pytest

from sluice_checkpoints import termination_log

WARNINGS = [f"{number}: " + "w" * 300 for number in range(30)]
MANY = {"warnings": 30, "firstWarnings": WARNINGS}


@pytest.mark.parametrize("message", ["x" * 10_000, "ä" * 10_000, '"' * 10_000, "\n" * 4_000])
@pytest.mark.parametrize("warnings", [{}, MANY], ids=["no warnings", "many warnings"])
def test_a_long_message_is_cut_to_what_kubernetes_keeps(message: str, warnings: dict[str, object]) -> None:
    """Warnings go first, then the end of the message."""
    text = termination_log.cut({"reason": "ValueError", "message": message, **warnings})
    document = json.loads(text)
    assert 3000 < len(text.encode()) <= termination_log.LIMIT
    assert document["message"].startswith(message[:5])
    assert document["message"].endswith("…")
    assert (document["reason"], document.get("warnings")) == ("ValueError", warnings.get("warnings"))


def test_a_short_message_is_whole() -> None:
    assert json.loads(termination_log.cut({"reason": "R", "message": "short"})) == {"reason": "R", "message": "short"}
    text = termination_log.cut({"reason": "R", "message": "short", **MANY})
    left = json.loads(text)["firstWarnings"]
    assert len(text) <= termination_log.LIMIT
    assert json.loads(text)["message"] == "short"
    assert left == WARNINGS[: len(left)]
