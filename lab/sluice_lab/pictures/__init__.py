"""Pictures of the chart's dashboards: panels from the dashboards' JSON, drawn as SVG. Pure: queries are answered by the caller."""
