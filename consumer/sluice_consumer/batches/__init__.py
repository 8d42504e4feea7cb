"""Batches: what the next one reads, the epoch that runs them, the loop, what retention takes (docs/protocol.md).

The order of bind, process and commit is what nothing lost rests on.
No Spark, no Kubernetes; the planner is pure.
"""
