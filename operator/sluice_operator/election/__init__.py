"""Which of several operators acts: a Lease with a fencing check.

Two leaders would make two drivers.
It knows no KinesisConsumer.
"""
