"""The API server: a port of eight calls, and the real client.

All of Kubernetes goes through here, so a simulation can replace it.
It knows no rule.
"""
