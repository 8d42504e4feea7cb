"""Sluice inside Spark: the data source, running a batch and judging its jobs, executors.

Everything that depends on Spark's inside is in one room.
It holds no lease and decides no batch.
"""
