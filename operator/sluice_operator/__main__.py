"""`python -m sluice_operator`: the whole process. A leader election would wrap `kopf.run` here."""

from __future__ import annotations

import logging
import os
from typing import Any, cast

import kopf

from sluice_operator.cache import Cache
from sluice_operator.client import ApiServer, connect
from sluice_operator.handlers import registry
from sluice_operator.loops import Loops
from sluice_operator.reconcile import Office
from sluice_operator.settings import read

QUIET = ("kopf.objects", "kopf.activities", "aiohttp.access")  # a line for every event of every pod, and every probe


def main() -> None:
    """Run until SIGTERM."""
    settings = read(os.environ)
    kopf.configure(log_format=kopf.LogFormat[settings.log_format.upper()])
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    cache = Cache()
    loops = Loops(Office(ApiServer(connect()), cache, settings))
    kopf.run(
        registry=registry(cache, loops),
        standalone=True,
        identity=cast("Any", settings.identity),  # else kopf asks for a user name, which a bare uid has not
        clusterwide=not settings.namespaces,
        namespaces=settings.namespaces,
        liveness_endpoint=settings.liveness,
    )


if __name__ == "__main__":
    main()
