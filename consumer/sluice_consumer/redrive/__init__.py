"""Gives dead letters to a pipeline again (docs/dead-letters.md).

A record that was left out is not read from the stream again, so it comes from its dead letter.
It moves no position and holds no lease.
"""
