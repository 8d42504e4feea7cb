"""The Kubernetes side of Sluice: turns a KinesisConsumer into a migration Job, a driver pod and an honest status.

The order of work is observe → plan → record → apply. Only `plan` and what it calls decide, and they are pure; only
`apply` and `client` touch the API server. Nothing here has AWS credentials or talks to AWS.
"""
