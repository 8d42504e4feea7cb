"""Where dead letters go, in a folder, a queue or a stream, and where they wait for their batch (docs/dead-letters.md).

A record is left out only if its dead letter is stored, so each store says when that is so for good.
It decides of no record whether it is poison.
"""
