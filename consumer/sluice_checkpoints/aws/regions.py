"""The regions of AWS, as botocore lists them. A new one may be missing there, so none is refused."""

from __future__ import annotations

import difflib

from botocore.loaders import Loader


def doubt(region: str) -> str:
    """Words on a region that is in no partition; "" for one that is in one."""
    known = {name for partition in Loader().load_data("partitions")["partitions"] for name in partition["regions"]}
    if region in known:
        return ""
    meant = difflib.get_close_matches(region, known, 1)
    return f"botocore does not know the region {region}" + (f"; did you mean {meant[0]}?" if meant else "")
