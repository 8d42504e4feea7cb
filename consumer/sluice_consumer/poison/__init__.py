"""Poison: the search for a record that `process` cannot deal with, what an exception says, how the record is left out (docs/protocol.md, "Poison").

One record must not stop a shard, and an outage must not cost records: what distinguishes the two is in one room.
It starts no Spark and reads no clock; search and causes are pure. The simulation runs this code.
"""
