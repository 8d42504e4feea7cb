"""The machine below a cluster: Docker, kind, Kubernetes' programs, images, processes.

A fresh machine has none of them, and no registry of images.
It knows neither Sluice's tables nor a scenario.
"""
