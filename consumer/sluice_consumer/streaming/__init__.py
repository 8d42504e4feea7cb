"""A consumer as a source of Spark's Structured Streaming (docs/structured-streaming.md).

State, watermarks and streaming sinks are Spark's, and need its streaming queries.
It writes no row but through `batches`.
"""

from sluice_consumer.streaming.stream_source import source

__all__ = ["source"]
