"""From the positions of a consumer to other positions: what was asked, the plan, and the program that carries it out.

Nobody should have to edit rows by hand to read again or to skip: it has to survive a crash after every write, and to keep parents before children.
The plan is pure; services are reached through `ports` only. The writes are those of `protocol.reset_writes`, which a driver completes as well.
"""
