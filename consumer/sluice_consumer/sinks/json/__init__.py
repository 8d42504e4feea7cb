"""JSON documents of records as rows with types (docs/sinks.md, "JSON documents")."""
