"""The process: kopf's handlers, one loop a resource, and the reconcile.

Threads, time and kopf are used here and in no room below.
It holds no rule.
"""
