"""Every story and every sabotage: importing this enters them all into their lists."""

from simulation import (  # noqa: F401 - they enter themselves
    sabotage_aggregates,
    sabotage_batches,
    sabotage_beginnings,
    sabotage_epochs,
    sabotage_losses,
    sabotage_processes,
    sabotage_shards,
    stories,
    stories_aggregates,
    stories_beginnings,
    stories_losses,
    stories_processes,
)
from simulation.sabotage import SABOTAGES, Sabotage
from simulation.story import STORIES

__all__ = ["SABOTAGES", "STORIES", "Sabotage"]
