"""Rules: from a view to the status to write, the actions to take and the events to send.

One ordered table; the first rule that returns a step decides.
Pure: no package, no API, no clock.
"""
