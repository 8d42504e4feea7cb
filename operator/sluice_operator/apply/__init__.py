"""Actions onto the API server, and the objects that they make.

Every write has its condition, and may be repeated after a crash.
It carries out actions and decides none.
"""
