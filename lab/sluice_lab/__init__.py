"""The real parts on one machine: emulated AWS, Docker, images and a Kubernetes cluster.

For `make demo`, the contract tests and the cluster tests. Nothing here is shipped: no other package may import it.
"""
