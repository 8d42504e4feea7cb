"""Values: the status that is kept, the objects that were seen, the view of both, the actions of a plan.

A plan can be printed, compared and written as a literal in a test.
No package, no API, no clock.
"""
