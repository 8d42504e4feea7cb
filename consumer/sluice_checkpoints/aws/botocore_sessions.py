"""Sessions of botocore that share what it knows of services.

Otherwise a client has 9 MB of that, and the driver of a pool has a client for each consumer.
"""

from __future__ import annotations

import functools

from botocore.loaders import Loader
from botocore.session import Session


@functools.cache
def _models() -> Loader:
    """What botocore knows of services. It is read once in a process, and never changed."""
    found: Loader = Session().get_component("data_loader")
    return found


def new_session() -> Session:
    """A session of its own: one that is shared is not thread-safe while clients are made."""
    made = Session()
    made.register_component("data_loader", _models())
    return made
