"""Candidates of the election, each with one rule taken out."""

from __future__ import annotations

from typing import Any

import pytest
from election_world import TERMS

from sluice_operator.election.candidate import Candidate, ElectionTimings, LostLeadership

Json = dict[str, Any]


class FromTheReply(Candidate):
    """Counts its time from the reply, which may be late."""

    def _write(self, there: Json | None) -> None:
        super()._write(there)
        self._until = self._clock() + self._timings.deadline


class Unconditional(Candidate):
    """Writes whatever stands there by now."""

    def _patch(self, _seen: object, spec: Json) -> Json:
        return self._cluster.patch("Lease", self._ref.namespace, self._ref.name, {"spec": spec})


class TrustsAbsence(Candidate):
    """Takes a Lease that is not there for a free one."""

    def _see(self, there: Json | None) -> None:
        super()._see(there)
        if there is None and self._lease is not None and self._until is None:
            self._lease = type(self._lease)("", self._ref.identity, 0, 0, 0)


class Forgetful(Candidate):
    """Does not see that the Lease moves."""

    def _see(self, there: Json | None) -> None:
        before = self._lease
        super()._see(there)
        if before and self._lease and self._until is None:
            self._lease = type(before)(self._lease.version, self._lease.holder, before.duration, 0, before.since)


class NeverDeposed(Candidate):
    """Goes on though another's name stands there."""

    def _see(self, there: Json | None) -> None:
        try:
            super()._see(there)
        except LostLeadership:
            self._until = self._clock() + self._timings.deadline


MUTANTS = [
    pytest.param(Candidate, ElectionTimings(duration=8, deadline=40), id="gives up after others took over"),
    *(pytest.param(make, TERMS, id=make.__name__) for make in (FromTheReply, Unconditional, TrustsAbsence, Forgetful, NeverDeposed)),
]
