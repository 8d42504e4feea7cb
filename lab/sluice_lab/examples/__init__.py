"""Runs the examples as their users would: their own manifests, the image's line of Spark with its jars, emulated AWS.

An example's test is a few lines over this room. What an example holds in the end is counted in its own test, by a reader that is not Spark.
"""
