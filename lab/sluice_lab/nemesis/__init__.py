"""A nemesis on a real cluster: injects a seeded schedule of faults into a consumer, and checks what the consumer left behind.

Pure modules: `schedule`, `history`, `passes`, `takeover`, `timeline`. On the cluster: `injector` (injects faults), `sampler` (samples the checkpoint
table), `experiment` (runs all of it). `sink` runs in the consumer's pods.
"""
