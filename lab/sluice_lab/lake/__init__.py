"""A lake on this machine: a real S3 server, Iceberg's own REST catalog, and readers that are not Spark.

Tests and the nemesis store through Sluice's sinks and count with `readers`. Nothing here knows Spark or Sluice's checkpoints.
"""
