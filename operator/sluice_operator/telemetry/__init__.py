"""Metrics and health over HTTP.

A pager and a dashboard ask; nothing in the operator does.
Nothing is decided by them.
"""
