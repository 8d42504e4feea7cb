"""The checkpoint table of a Sluice consumer: its rows, the conditional writes on them, and how other systems' tables become one.

The shared contract of the Spark side and the migrator. It may import nothing else of ours, and its pure core (`model`, `planner`, `store`,
`memory`) imports without any third-party package.
"""
