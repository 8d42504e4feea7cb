"""Metrics and health over HTTP.

Alerts and dashboards read them.
The operator decides nothing by them.
"""
