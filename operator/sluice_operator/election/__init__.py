"""Which of several operators acts: a Lease with a fencing check.

Two leaders would create two drivers.
It knows no KinesisConsumer.
"""
