"""The program `sluice`, which kubectl runs as `kubectl sluice`: KinesisConsumers seen and steered by a person.

It has the rights of that person's kubeconfig, and asks the operator for nothing but what an annotation or the spec asks.
It runs on the person's machine: the operator's process imports nothing of it.
"""

INSTALL = 'README.md, "Without Kubernetes"'  # describes how to install an extra
