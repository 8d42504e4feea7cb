"""The ports in memory: they refuse exactly what DynamoDB, Kinesis and Kubernetes' API server refuse.

Simulations and tests run the real code over them; contract suites hold them to the services.
No product module imports it.
"""
