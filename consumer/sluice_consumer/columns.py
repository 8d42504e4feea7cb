"""The columns of a batch, as text. Needs no package; `sluice_consumer.SCHEMA` and `spark.arrow.SCHEMA` say the same to Spark and to Arrow.

* `partitionKey`: of the record.
* `data`: the payload, as the producer sent it. Aggregates of the KPL are taken apart.
* `stream`, `shardId`: where it comes from.
* `sequenceNumber`: decimal digits. As text: it does not fit 64 bits, and text of different lengths does not sort as numbers do.
* `subSequenceNumber`: place in an aggregate, from 0; 0 outside of one.
* `approximateArrivalTimestamp`: when Kinesis got it, to a millisecond.
"""

DDL = (
    "partitionKey STRING, data BINARY, stream STRING, shardId STRING, sequenceNumber STRING, subSequenceNumber BIGINT, "
    "approximateArrivalTimestamp TIMESTAMP"
)
