"""What a stream gives a simulated driver to do, second by second: how busy it is, and how far behind."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
WINDOW, RECORDS = 60, 100  # seconds of `busy`; records a second that one executor reads


@dataclass
class Demand:
    """How much there is to read.

    Attributes:
        executors: so many could just do it.
        useful: so many at most make anything faster: a sink takes no more.
        shards: those that give records.
        hot: all of it comes on one of them.
    """

    executors: float
    useful: int = 100
    shards: int = 4
    hot: bool = False


@dataclass
class Work:
    """One driver's: what it has done lately. The backlog is the table's, for the next driver has it too."""

    spent: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    records: float = 0.0

    def second(self, demand: Demand, backlog: float, executors: int) -> float:
        """What is left after a second, in seconds behind."""
        power = min(executors, demand.useful)
        due = demand.executors * (1 + backlog)
        done = min(due, float(power))
        self.spent.append(done / power if power else 1.0)
        self.records += done * RECORDS
        return (due - done) / demand.executors if demand.executors else 0.0

    def figures(self, demand: Demand, backlog: float) -> Json:
        behind = round(backlog * 1000)
        return {
            "busy": round(sum(self.spent) / len(self.spent), 2) if self.spent else 0.0,
            "records": round(self.records),
            "activeShards": demand.shards if demand.executors else 0,
            "millisBehindLatest": behind,
            "farthestShard": "shardId-000000000002" if behind else None,
            "millisBehindOthers": 0 if demand.hot else behind,
        }
