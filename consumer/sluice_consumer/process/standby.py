"""A supervisor that stands by: its driver has started Spark and loaded the user's code, and another driver holds the lease.

Nothing that decides is read before the lease is held, and nothing that was read before survives the take (docs/protocol.md, "A driver stands by").
So every check of a start is made again under the lease. The driver gets its epoch after that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator

from sluice_checkpoints.aws.credentials import REFUSED_KEY
from sluice_checkpoints.aws.retry import Again
from sluice_checkpoints.errors import LeaseHeld, Refused, ServiceUnavailable, SluiceError
from sluice_checkpoints.protocol import lease
from sluice_checkpoints.protocol.lease import LeaseRequest, TakenLease, Watcher
from sluice_checkpoints.protocol.store import CheckpointStore
from sluice_consumer import logs
from sluice_consumer.config import Config
from sluice_consumer.exits.ending import Ending, decoded, killed, unexplained
from sluice_consumer.process import supervisor, wiring
from sluice_consumer.process.child_process import DriverProcess, end_group
from sluice_consumer.process.supervisor import Heartbeats, Supervisor

NO_HEART = contextlib.nullcontext()
NO_ANSWER_SECONDS = 300.0  # of the table, until a standby ends
KEY_SECONDS = 30.0  # the same of a table that refuses the credentials. Their source has no others: whoever starts the next standby may have some


class DriverOver(SluiceError):
    """The driver has ended while its supervisor stood by: there is nobody to hand an epoch to."""


def check(config: Config) -> None:
    """Makes sure that the configuration is one that can stand by.

    Raises:
        Refused: it takes the lease by force, or its run has an end.
    """
    if config.force:
        raise Refused("force: a standby never takes a lease that is held. Set force to false, or start without --standby")
    if config.until is not None:
        raise Refused("until: a run with an end has no standby. Leave until out, or start without --standby")


def take(
    keeper: Supervisor,
    config: Config,
    driver: DriverProcess,
    sleep: Callable[[float], None] = time.sleep,
    readiness: Readiness | None = None,
) -> TakenLease:
    """Stands by until the lease is released or has expired, takes it, and makes every check of a start again.

    `readiness` hears when the driver could begin at once, and when it could not any more.

    Raises:
        DriverOver: the driver has ended. Stopped: it was stopped. Refused: see `supervisor.open_table`; the lease is free again.
        ServiceUnavailable: the table has not answered for `NO_ANSWER_SECONDS`, or has refused the credentials for `KEY_SECONDS`.
    """
    looks = wiring.looking_store(config)
    state = readiness or Readiness()

    def pause(seconds: float) -> None:
        sleep(seconds)
        if driver.poll() is not None:
            raise DriverOver("the driver that stood by has ended")
        state.paused(driver.ready)

    announce = Announcement()

    def notify(error: SluiceError) -> None:
        announce(error)
        if isinstance(error, ServiceUnavailable):
            state.missed(error)

    def way(_store: CheckpointStore, _claim: LeaseRequest, watcher: Watcher) -> TakenLease:
        return lease.stand_by(looks, lambda: supervisor.claim(config), watcher, notify)

    taken = keeper.take(Watcher(sleep=pause, look_seconds=lease.LOOK_SECONDS), way)
    logs.say(f"the lease is taken ({taken.how}): the start is checked again")
    heart = keeper.heart(taken)
    confirm(keeper, taken, lambda: supervisor.open_table(config, made=True), _beating(heart))
    return dataclasses.replace(taken, sent=heart.accepted)


def confirm(
    keeper: Supervisor, taken: TakenLease, check: Callable[[], object], beating: contextlib.AbstractContextManager[object] = NO_HEART
) -> None:
    """Makes a check under the lease. If it fails the lease is released, because nothing has worked under it."""
    try:
        with beating:
            check()
    except BaseException:
        keeper.release(taken.epoch)
        raise


@contextlib.contextmanager
def _beating(heart: Heartbeats) -> Iterator[None]:
    """Beats in a thread, for a stream or table that takes its time. The driver hears of it afterwards, with its epoch."""
    thread = threading.Thread(target=heart.run, name="heart", daemon=True)
    thread.start()
    try:
        yield
    finally:
        heart.stop.set()
        thread.join()


def ending(driver: DriverProcess) -> Ending:
    """How a driver ended that stood by. It had no lease, so that nothing is released."""
    end_group(driver)
    if driver.returncode < 0:
        return killed(driver.returncode)
    if not driver.gave_its_word():
        return unexplained(driver.returncode)
    code, _ = decoded(driver.returncode)
    return Ending(code or 1, "", "")  # the driver has said why itself


@dataclasses.dataclass
class Readiness:
    """Whether a standby could begin at once: its driver is ready, and the table answers. Else nobody may count on it.

    Attributes:
        on_ready, on_lost: called each time that it can, and each time that it cannot any more.
        clock: monotonic seconds.
    """

    on_ready: Callable[[], None] = lambda: None
    on_lost: Callable[[], None] = lambda: None
    clock: Callable[[], float] = time.monotonic
    ready: bool = False
    unanswered: bool = False
    missing_since: float | None = None
    refused_since: float | None = None

    def paused(self, is_ready: Callable[[], bool]) -> None:
        """Between two looks, the first of which had an answer; or after one that had none."""
        if self.unanswered:
            self.unanswered = False
            return
        self.missing_since = self.refused_since = None
        if not self.ready and is_ready():
            self.ready = True
            self.on_ready()

    def missed(self, error: ServiceUnavailable) -> None:
        """A look had no answer.

        Raises:
            ServiceUnavailable: none has had one for long, or the credentials are refused for good.
        """
        now, self.unanswered = self.clock(), True
        self.missing_since = now if self.missing_since is None else self.missing_since
        self.refused_since = (now if self.refused_since is None else self.refused_since) if refuses_key(error) else None
        if self.ready:
            self.ready = False
            self.on_lost()
        refused = 0.0 if self.refused_since is None else now - self.refused_since
        if now - self.missing_since >= NO_ANSWER_SECONDS or refused >= KEY_SECONDS:
            raise error


def refuses_key(error: ServiceUnavailable) -> bool:
    """Whether the table answered each try of a look, and took none of the credentials that their source had."""
    return isinstance(error.__cause__, Again) and error.__cause__.cause in REFUSED_KEY


@dataclasses.dataclass
class Announcement:
    """Says for whom a standby waits: once for each holder, and each time that the table does not answer."""

    holder: str | None = None

    def __call__(self, error: SluiceError) -> None:
        """Says it, unless it was said."""
        if not isinstance(error, LeaseHeld):
            logs.warn(f"standing by: {error}; it is tried again")
            return
        who = str(error).partition(":")[0]
        if who != self.holder:
            self.holder = who
            logs.say(f"standing by: {who}")
