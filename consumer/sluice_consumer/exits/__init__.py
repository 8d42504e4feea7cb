"""How a program ends, and what it says then: exit codes, the exit message, where its threads are, the user's exception.

The operator and people read only that of a pod which is gone.
It decides nothing.
"""
