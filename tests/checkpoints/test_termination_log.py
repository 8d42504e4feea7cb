"""What a container leaves for Kubernetes to show."""

from __future__ import annotations

import json

import pytest

from sluice_checkpoints import termination_log


@pytest.mark.parametrize("message", ["x" * 10_000, "ä" * 10_000, '"' * 10_000, "\n" * 4_000])
def test_a_long_message_is_cut_to_what_kubernetes_keeps(message: str) -> None:
    text = termination_log.cut({"reason": "ValueError", "message": message})
    assert 3000 < len(text.encode()) <= termination_log.LIMIT
    assert json.loads(text)["message"].endswith("…")


def test_a_short_message_is_whole() -> None:
    assert json.loads(termination_log.cut({"reason": "R", "message": "short"})) == {"reason": "R", "message": "short"}
