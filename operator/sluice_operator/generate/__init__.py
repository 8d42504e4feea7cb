"""Files that the code knows best: the CRD, and tables of docs/operations.md.

A field or a reason is described once.
Runs at `make generate`, never in the operator.
"""
