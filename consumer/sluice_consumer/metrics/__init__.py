"""The driver's metrics and the figures of its report (docs/metrics.md).

Figures are read from rows at a scrape, so none is kept up to date.
Nothing is decided by them.
"""
