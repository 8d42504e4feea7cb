"""For tests of pipelines: batches from Python values, and kills between a sink's writes (docs/testing.md).

Public: whoever writes a pipeline can see whether its sink holds each record once. PySpark is imported when the first of these names is asked for.
It is for local Spark, and no consumer may import it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice_consumer.testing.batches import TestRecord, batch, info
    from sluice_consumer.testing.trials import replays
    from sluice_consumer.testing.verdict import Killed, KillPoint, Miscount, ReplayVerdict

HOMES = {
    "TestRecord": "batches",
    "batch": "batches",
    "info": "batches",
    "replays": "trials",
    "Killed": "verdict",
    "KillPoint": "verdict",
    "Miscount": "verdict",
    "ReplayVerdict": "verdict",
}
__all__ = ["KillPoint", "Killed", "Miscount", "ReplayVerdict", "TestRecord", "batch", "info", "replays"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - a pytest plugin costs other runs nothing

    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__]  # what a person completes, without the modules behind it
