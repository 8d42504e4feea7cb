"""The checkpoint table: its rows, its conditional writes and its lease (docs/protocol.md).

Every write states its condition here, as data, so a simulation can refuse what DynamoDB refuses.
It reads no clock and calls no service: table, time and tokens are handed in.
"""
