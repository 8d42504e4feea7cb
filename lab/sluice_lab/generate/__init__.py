"""Files that are generated from the code: the CRD, and tables of documents.

So a field or a reason is described once.
Runs at `make generate`, never in the operator.
"""
