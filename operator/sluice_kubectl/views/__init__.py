"""Resources, pods, events and figures as values: what you see, what an action writes, what a report hides.

Screens and JSON documents show these values, so the two cannot disagree.
Pure: no API, no terminal, no clock; `now` is an argument.
"""
