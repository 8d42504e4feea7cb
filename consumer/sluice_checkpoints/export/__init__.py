"""From rows of Sluice back to another system's table.

A user who moves to Sluice must be able to go back.
As `migrate`: a pure plan, and ports for the rest.
"""
