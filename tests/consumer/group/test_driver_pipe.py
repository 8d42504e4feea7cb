"""The pipe from the supervisor of a group to its driver."""

from __future__ import annotations

import sys

from sluice_consumer.group.messages import Beat
from sluice_consumer.group.program import DriverPipe
from sluice_consumer.process import child_process


def test_heartbeats_of_forty_consumers_have_room_while_a_driver_starts_for_ten_minutes() -> None:
    """Six for each lease of 20 s. Those without room would be missing, and the driver would end with all consumers as soon as it reads."""
    with child_process.starting([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        pipe = DriverPipe(child)
        wanted = 40 * 6 * 600 // 20
        assert sum(pipe.send(Beat("a-consumer-of-orders", 12345, 1234567.123456)) for _ in range(wanted)) == wanted
        child_process.end_group(child)
