"""Letters that can always be written, and failures of their stores (docs/dead-letters.md, "What is certain")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.letters.letter import LONGEST, DeadLetter, writable
from sluice_checkpoints.letters.pending import REJECTED, PendingName
from sluice_consumer.batches.batch_letters import Letters
from sluice_consumer.letters.services import document
from sluice_consumer.letters.stores import LetterNotWritten, NamedFailures
from sluice_consumer.spark.failures import judged

ANY = st.text(st.characters(codec=None, exclude_categories=()))  # lone surrogates and controls, too


def letter(error: str) -> DeadLetter:
    return DeadLetter("c", "s", "shard", "1", 0, 0, "k", b"\xff", 1, 3, error)


@given(ANY)
def test_a_letter_is_written_and_read_whatever_its_exception_says(error: str) -> None:
    for written in (letter(error).to_json().encode(), document(letter(error)).encode("ascii")):
        read = DeadLetter.from_json(written.decode(), "name")
        assert read.error == writable(error)


def test_a_letter_has_a_bound() -> None:
    found = json.loads(letter("a" * 9_000_000 + "end").to_json())["error"]
    assert (found[:1], found[-3:], len(found)) == ("a", "end", LONGEST + 3)


class Store:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def hold(self, _name: PendingName, _letters: Letters) -> str | None:
        raise self._error

    def held(self) -> Mapping[str, tuple[PendingName, Letters]]:
        return {}

    def publish(self, _entry: str) -> bool:
        raise self._error

    def drop(self, entries: Iterable[str]) -> frozenset[str]:
        return frozenset(entries)


NAME = PendingName(1, 1, 1, REJECTED)


def test_what_a_store_raises_unforeseen_has_a_name_and_is_no_failure_of_process() -> None:
    with pytest.raises(
        LetterNotWritten, match=r"onError\.deadLetter: the dead letter of record 1/0 of shard was not stored \(KeyError: 'x'\)"
    ) as found:
        NamedFailures(Store(KeyError("x"))).hold(NAME, (letter("bad"),))
    assert judged(found.value) is None
    with pytest.raises(LetterNotWritten, match="c/pending/1: a dead letter of a committed batch was not stored"):
        NamedFailures(Store(KeyError("x"))).publish("c/pending/1")


def test_what_a_store_names_stays() -> None:
    with pytest.raises(ServiceUnavailable):
        NamedFailures(Store(ServiceUnavailable("later"))).hold(NAME, (letter("bad"),))
