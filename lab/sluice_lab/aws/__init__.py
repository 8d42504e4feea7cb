"""AWS on loopback: emulated Kinesis and DynamoDB, and a proxy that makes their calls fail.

Demo, nemesis and tests use the wire formats of the real services.
It starts programs. It puts no data into them: scenarios do.
"""
