"""Shared by demo and nemesis: stream, records, the earlier KCL application, Sluice installed, the account of what was delivered.

Code that is not Sluice's counts every record from the producer to the sink.
It runs no demo and injects no fault.
"""
