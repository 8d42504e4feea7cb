"""One shard inside a task: from a position, or from a bound range, to user records.

Every record goes through here, new or replayed, and must be the same both times.
No Spark and no clock of its own: the simulation runs this very code.
"""
