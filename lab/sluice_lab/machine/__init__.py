"""The machine below a cluster: Docker, kind, Kubernetes' programs, images, processes.

A fresh machine has none of them, and may reach no image registry.
It knows neither Sluice's tables nor scenarios.
"""
