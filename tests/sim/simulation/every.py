"""Every story and every mutant: importing this enters them all into their lists."""

from simulation import (  # noqa: F401 - they enter themselves
    mutant_aggregates,
    mutant_batches,
    mutant_beginnings,
    mutant_epochs,
    mutant_folding,
    mutant_idle,
    mutant_losses,
    mutant_owners,
    mutant_poison,
    mutant_processes,
    mutant_resets,
    mutant_shards,
    mutant_side_by_side,
    mutant_standby,
    mutant_versions,
    stories,
    stories_aggregates,
    stories_beginnings,
    stories_folding,
    stories_idle,
    stories_losses,
    stories_owners,
    stories_poison,
    stories_processes,
    stories_resets,
    stories_side_by_side,
    stories_standby,
    stories_versions,
)
from simulation.mutant import MUTANTS, ProtocolMutant
from simulation.story import STORIES

__all__ = ["MUTANTS", "STORIES", "ProtocolMutant"]
