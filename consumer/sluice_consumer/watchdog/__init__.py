"""What ends work that does not end: a start, a batch, a batch of somebody else's query (docs/runbooks.md, "A batch that does not end").

A driver that waits forever looks as if it worked; so each wait of a batch has a watch beside it.
It reads no record, and commits nothing.
"""
