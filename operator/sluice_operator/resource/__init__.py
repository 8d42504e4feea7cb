"""The user's side of a KinesisConsumer: fields, bounds, policy, and what a change costs.

A wrong field is refused by name before anything is made.
No API and no clock.
"""
