"""The process: kopf's handlers, one loop a resource, one reconcile a pass.

Here threads, time and kopf meet what the other rooms decide.
It holds no rule.
"""
