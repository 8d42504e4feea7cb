"""What can go wrong before a consumer works, looked at in order: configuration, entrypoint, Java, credentials, stream, table, sink.

`python -m sluice_consumer --check` prints it, and every start begins with it, so that a mistake costs seconds and leaves nothing behind. Nothing
here may write, hold a lease or start Spark. Each check has a time limit; a service that does not answer is not a mistake.
"""
