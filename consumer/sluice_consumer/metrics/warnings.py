"""What the driver of an epoch warns of: in its log, its metrics and its reports."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sluice_consumer import logs
from sluice_consumer.driver_report import DriverWarning, WarningReason

KEPT = 5  # the last ones are reported; all of them are in the log
LOSSES = 2  # the last ones are named in the counts


class Warnings:
    """The warnings of one epoch. Thread safe.

    Attributes:
        losses: the last ones about records that may be missing.
    """

    def __init__(self, count: Callable[[DriverWarning], None] = lambda _warning: None) -> None:
        """`count`: called with each that is said."""
        self._count = count
        self._kept: deque[DriverWarning] = deque(maxlen=KEPT)
        self._lasting: dict[WarningReason, DriverWarning] = {}
        self.losses: deque[str] = deque(maxlen=LOSSES)

    def say(self, warning: DriverWarning) -> None:
        """Logs and counts it."""
        self._count(warning)
        logs.warn(str(warning))

    def keep(self, reason: WarningReason, text: str) -> None:
        """Says it, and adds it to every further report."""
        self._kept.append(warning := DriverWarning(reason, text))
        if reason is WarningReason.DATA_LOSS_SUSPECTED:
            self.losses.append(text)
        self.say(warning)

    def lasts(self, reason: WarningReason, text: str | None, *, again: bool = False) -> None:
        """Reports it until it is called with None. Says it when it begins, or each time, `again`."""
        if text is None:
            self._lasting.pop(reason, None)
            return
        begins = reason not in self._lasting
        self._lasting[reason] = warning = DriverWarning(reason, text)
        if begins or again:
            self.say(warning)

    @property
    def reported(self) -> tuple[DriverWarning, ...]:
        """The last ones that are kept, and those that last."""
        return *self._kept, *filter(None, map(self._lasting.get, WarningReason))
