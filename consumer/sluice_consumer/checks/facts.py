"""What is known before the checks, and what they find out for those after them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sluice_checkpoints.aws.connections import TimeLimits
from sluice_checkpoints.stream.model import StreamIdentity
from sluice_consumer.config import Config

SECONDS = 2.0


@dataclass
class StartFacts:
    """Of one run of the checks.

    Attributes:
        path: of the configuration file.
        seconds: that each check has.
        environment: of this process.
        until: the end of the run, as the option names it.
        scratch: where modules out of a ConfigMap are copied to; None: they were, by the start.
        config: as the first check read it.
        identity: the stream, as it was described.
        json_only: the service of the stream does not speak CBOR.
        imported: functions whose import ended well before. They are not imported again: all members of a pool may have the same one.
    """

    path: Path
    seconds: float = SECONDS
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    until: str | None = None
    scratch: Path | None = None
    config: Config | None = None
    identity: StreamIdentity | None = None
    json_only: bool = False
    imported: set[str] = field(default_factory=set)

    @property
    def given(self) -> Config:
        """The configuration; only for checks after the first one."""
        assert self.config is not None  # noqa: S101 - the checks are in order
        return self.config

    @property
    def waits(self) -> TimeLimits:
        """For one call: short enough that a silent host is named before the check's own time is over."""
        return TimeLimits(self.seconds * 0.45, self.seconds * 0.9)
