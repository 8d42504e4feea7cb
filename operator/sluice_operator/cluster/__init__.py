"""The API server: a port of eight calls, the real client, and one in memory that refuses what the real one refuses.

All of Kubernetes goes through here, so a simulation can replace it.
It knows no rule.
"""
