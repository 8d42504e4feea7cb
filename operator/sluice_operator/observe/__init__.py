"""From the API server's objects to values; watches and the cache say when to reconcile.

A watch may be late, so a reconcile acts on a live read.
It decides nothing.
"""
