"""What demo and nemesis share: stream, records, the consumer before, Sluice installed, the books of what was delivered.

A record is counted from the producer to the sink, by code that is not Sluice's.
It tells no story and does no harm.
"""
