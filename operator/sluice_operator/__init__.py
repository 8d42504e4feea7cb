"""The Kubernetes side of Sluice: turns a KinesisConsumer into a migration Job, a driver pod and a status.

A reconcile observes, plans, writes its intent into the status, and applies. Only `plan` decides, and it is pure; only `apply` and
`cluster.client` touch the API server. Nothing here has AWS credentials or talks to AWS.
"""
