"""The columns of a batch, as text. Needs no package; `sluice_consumer.SCHEMA` and `spark.arrow.SCHEMA` say the same to Spark and to Arrow.

* `partitionKey`: partition key of the record.
* `data`: payload, as the producer sent it. KPL aggregates are split into their records.
* `stream`: name of the record's stream.
* `shardId`: id of the record's shard.
* `sequenceNumber`: sequence number in decimal digits, as text because it does not fit 64 bits. Texts of different lengths do not sort as numbers.
* `subSequenceNumber`: index in a KPL aggregate, from 0. 0 for a record outside an aggregate.
* `approximateArrivalTimestamp`: time at which Kinesis received the record, to a millisecond.
"""

FORMAT = "sluice"  # of the data source
DDL = (
    "partitionKey STRING, data BINARY, stream STRING, shardId STRING, sequenceNumber STRING, subSequenceNumber BIGINT, "
    "approximateArrivalTimestamp TIMESTAMP_LTZ"
)


def readable(column: str) -> str:
    """SQL for bytes as text, without loss.

    UTF-8 stays as it is. Everything else, and a text that begins with `base64:`, becomes `base64:` and its base64.
    """
    text = f"CAST({column} AS STRING)"
    encoded = f"concat('base64:', translate(base64(CAST({column} AS BINARY)), concat(chr(13), chr(10)), ''))"  # Spark breaks it into lines
    return f"CASE WHEN is_valid_utf8({text}) AND NOT startswith({text}, 'base64:') THEN {text} ELSE {encoded} END"
