"""For the tests of the sinks."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # tests have no packages (importlib mode)

from conftest_postgres import database
from conftest_process import consuming
from conftest_sinks import batch, bucket, disk, guest_account, hadoop_aws, lookup_down, s3_files, s3a

__all__ = ["batch", "bucket", "consuming", "database", "disk", "guest_account", "hadoop_aws", "lookup_down", "s3_files", "s3a"]
