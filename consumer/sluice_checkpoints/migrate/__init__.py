"""From another system's table to rows of Sluice: the plan, its rules, the claim and the migrator.

A takeover must neither skip nor guess, and must survive a crash after every write.
The plan is pure; services are reached through `ports` only.
"""
