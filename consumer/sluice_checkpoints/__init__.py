"""The checkpoint table of a Sluice consumer: its rows, the conditional writes on them, and how other systems' tables become one.

The Spark side and the migrator share it. It imports nothing else of ours; `protocol`, `formats`, `migrate` and `memory` import without any
third-party package.
"""
