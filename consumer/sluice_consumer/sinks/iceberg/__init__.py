"""An Iceberg table that takes each batch once, by a tag that moves in the commit of the rows (docs/sinks.md, "Iceberg")."""
