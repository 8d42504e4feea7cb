"""`python -m sluice_consumer dev`: your own code on emulated Kinesis, with records from a terminal or a file (docs/testing.md, "Dev").

Everything else needs an account of AWS, or the lab, which is not shipped.
It listens on loopback only, keeps nothing, and holds no figure of speed: the emulators are moto's.
"""
