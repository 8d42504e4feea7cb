"""Parquet files in object stores and file systems, and a manifest for each batch (docs/sinks.md, "Parquet")."""
