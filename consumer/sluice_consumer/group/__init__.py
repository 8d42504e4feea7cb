"""Several consumers in one Spark: one supervisor holds their leases, one driver runs their batches (docs/groups.md).

It exists because a driver for each of many small streams is mostly memory. It may not change what a consumer does: rows, batches and leases are the
work of the rooms below.
"""
