"""One scenario, in a cluster (`python -m sluice_lab.demo`) or on a laptop without one (`--local`).

A KCL 3 application has read a part of a stream in which one shard was split and two were merged. Then it was stopped. Sluice takes over from its
table. During the run two shards are merged, one is split, the consumer is scaled, and an executor and the driver are killed. At the end every record
is accounted for by the number it carries.
"""
