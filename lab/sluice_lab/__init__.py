"""The real parts on one machine: emulated AWS, Docker, images and a Kubernetes cluster.

`make demo`, the contract tests and the cluster tests use it. It is never shipped: no other package may import it.
"""
