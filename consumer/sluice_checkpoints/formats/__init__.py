"""Checkpoint tables of other systems: how each is recognised, read, and written on the way back (docs/migration.md).

One reader and one writer a format, each pure over a snapshot of raw rows.
It makes no call, and guesses nothing: what is not understood is refused by name.
"""
