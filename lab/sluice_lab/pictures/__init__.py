"""Pictures as SVG: the system on README's first screen, and the panels of the chart's dashboards. Pure: queries are answered by the caller."""
