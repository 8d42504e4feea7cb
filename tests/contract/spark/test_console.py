"""The pipeline `console`: what it prints of any bytes."""

from __future__ import annotations

import base64
import gzip

import pytest
from pyspark.sql import SparkSession

from sluice_consumer.pipelines import console
from sluice_consumer.testing import batch, info

pytestmark = pytest.mark.spark


def test_bytes_that_are_no_text_are_printed_too(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    payloads = [b'{"id":1}', "é".encode(), b"caf\xe9", gzip.compress(bytes(range(256)), mtime=0), b"", b"base64:"]
    console(batch(spark, payloads), info())
    first, *printed = capsys.readouterr().out.splitlines()
    assert first.endswith("6 records")
    shown = ['{"id":1}', "é", *("base64:" + base64.b64encode(data).decode() for data in payloads[2:4]), "", "base64:YmFzZTY0Og=="]
    assert [line.rsplit("  ", 1)[1] for line in printed] == shown
