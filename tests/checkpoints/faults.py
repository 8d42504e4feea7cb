"""Every call of a world in memory passes here, and one of them may be made to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sluice_checkpoints.errors import ServiceUnavailable
from sluice_checkpoints.stream.model import ShardList, ShardPlace, StreamIdentity
from sluice_lab.fakes.stream import MemoryStream
from sluice_lab.fakes.table import Hook


class Crash(BaseException):
    """The process is gone: nothing of it runs any more, no handler and no clean-up."""


@dataclass
class Calls:
    """Calls, numbered from 0.

    Attributes:
        crash_at: from this call on the process is dead. A crash "after" took effect, one "before" did not.
        lose_at: the reply of this call is lost.
        visit: called at every call with what it is; may do what other programs would do at this moment.
    """

    log: list[str] = field(default_factory=list)
    crash_at: int | None = None
    lose_at: int | None = None
    visit: Callable[[str], None] = lambda _what: None

    def __call__(self, when: str, operation: str, _argument: object) -> None:
        number = len(self.log)
        self.log.append(f"{when} {operation}")
        if self.crash_at is not None and number >= self.crash_at:
            raise Crash
        if number == self.lose_at:
            raise ServiceUnavailable(f"call {number} had no answer")
        self.visit(self.log[-1])


@dataclass
class Catalog:
    stream: MemoryStream
    calls: Hook

    def describe(self) -> StreamIdentity:
        self.calls("before", "describe stream", None)
        return self.stream.describe()

    def list_shards(self) -> ShardList:
        self.calls("before", "list shards", None)
        return self.stream.list_shards()

    def disowned(self, places: Iterable[ShardPlace]) -> dict[ShardPlace, str]:
        self.calls("before", "ask about places", None)
        return self.stream.disowned(places)
