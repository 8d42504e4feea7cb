"""What is wrong with a checkpoint table: rules over what was observed.

A person asks before a migration, and when something is late.
Reads only; the rules are pure.
"""
