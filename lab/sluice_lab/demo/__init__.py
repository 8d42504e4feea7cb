"""One story, told in a cluster (`python -m sluice_lab.demo`) and on a laptop without one (`--local`).

A KCL 3 application has read a part of a stream, in which one shard was split and two were merged, and was stopped.
Sluice takes over from its table, and meets a split, a merge, a change of size, and the death of an executor and of
the driver. At the end every record that was ever put is accounted for, by the number it carries.
"""
