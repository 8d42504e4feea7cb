"""The Spark side of Sluice: the data source, the shard reader, the driver's batch loop and its supervisor."""
