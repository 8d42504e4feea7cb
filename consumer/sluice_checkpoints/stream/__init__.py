"""A Kinesis stream: identity, shards and their parents; and the catalog that asks the service.

Reader, migration and diagnosis must agree on lineage.
`model` is pure; only `catalog` makes calls.
"""
