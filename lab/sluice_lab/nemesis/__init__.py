"""A nemesis on a real cluster: a seeded schedule of harm against a consumer, and judges that read only what it left behind.

Pure: `schedule`, `witness`, `takeover`, `svg`, `picture`. On the cluster: `hands` (does harm), `watch` (looks), `trial` (all of it). `sink` runs in
the consumer's pods.
"""
