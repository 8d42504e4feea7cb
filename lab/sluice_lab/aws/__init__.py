"""AWS on loopback: emulated Kinesis and DynamoDB, and a proxy that makes them fail.

Demo, nemesis and tests read and write real services' wire formats.
It starts programs; what is put in is a scenario's.
"""
