"""The processes of a driver pod: the supervisor that holds the lease, the driver that works, what each reports to Kubernetes.

A driver may hang or die at any moment; its supervisor must know and act.
It reads no record.
"""
