"""A Delta table that takes each batch once, by Delta's own transaction ids (docs/sinks.md, "Delta")."""
