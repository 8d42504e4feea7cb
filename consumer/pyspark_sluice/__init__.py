"""What the worker that lists Spark's data sources imports of Sluice: Spark imports every module there whose name begins with `pyspark_`.

That worker imports nothing else of ours, and Spark often hangs up on it before it has said its last word. It registers no data source: the driver
does (`sluice_consumer.spark.data_source`).
"""

from sluice_consumer.spark.python_workers import fold_hang_ups

fold_hang_ups()
