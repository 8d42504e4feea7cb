"""The command line `python -m sluice_checkpoints`. Kept stable (docs/interfaces.md).

Puts ports together, and says to people, programs and Kubernetes what came of it.
It holds no rule of the protocol.
"""
