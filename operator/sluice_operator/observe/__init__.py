"""From the API server's objects to values; watches and the cache say when to look.

A watch may be late, so a pass acts on a live read.
It decides nothing.
"""
