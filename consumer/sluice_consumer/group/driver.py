"""The driver of a group: begins and ends runs as its supervisor says, and watches the lease of each (docs/groups.md).

Its main thread only reads the pipe, looks at the clock and ends what has to end. It asks neither Spark nor a service, which may hang.
"""

from __future__ import annotations

import faulthandler
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from io import FileIO

from pyspark.sql import SparkSession

from sluice_consumer import logs
from sluice_consumer.config import Config
from sluice_consumer.exits.ending import Ending, ending_of, leave, report
from sluice_consumer.group.consumer_run import ConsumerRun, RunPorts
from sluice_consumer.group.ends import Act, EpochWork
from sluice_consumer.group.messages import Beat, Begin, Doing, Drain, DriverReads, Executors, Leave, Lose, Message, Over, parsed, shortened
from sluice_consumer.group.metrics import GroupMetrics
from sluice_consumer.group.turns import SlotQueue, StartTurns
from sluice_consumer.process.lease_handoff import end_group
from sluice_consumer.process.pod import Reporter
from sluice_consumer.spark.job_memory import JobMemory
from sluice_consumer.watchdog.armed_timer import PROCESS, ArmedTimer

LOOK_SECONDS = 0.1
STEP_SECONDS = 1.0  # between two steps towards the end of a run
LOCKED_SECONDS = 120.0  # for which code may hold Python's lock


@dataclass
class RunInDriver:
    """A run, and its lease. `stepped`: when it was ended last, in monotonic seconds."""

    run: ConsumerRun
    work: EpochWork
    stepped: float = float("-inf")

    def hear(self, message: Beat | Lose | Drain) -> None:
        """Words about another epoch than this one count for nothing."""
        if isinstance(message, Beat):
            self.work = self.work.beaten(message.generation, message.sent)
        elif isinstance(message, Lose):
            self.work = self.work.losing(message.generation)
        elif message.generation == self.work.generation:
            self.run.drains()


@dataclass
class GroupDriver:
    """Runs of many consumers in one Spark.

    Attributes:
        config_of: the configuration of a run that begins. share: of the slots, for the tasks that read a batch of one consumer.
        up: sends a message to the supervisor, and never waits; whether it was taken. end: ends this process and its group, at once.
        reports: where a run reports to; outside of a pool, nowhere.
        memory: of all jobs. leaves: a consumer whose run is over has left, and its metrics go.
        wanted: executors, once the supervisor has said so.
        turns: of runs that begin. queue: of batches for slots.
        unbegun: runs that could not begin, until the supervisor has taken that.
    """

    config_of: Callable[[Begin], Config]
    spark: SparkSession
    share: float
    up: Callable[[Message], bool]
    metrics: GroupMetrics = field(default_factory=GroupMetrics)
    end: Callable[[], None] = end_group
    clock: Callable[[], float] = time.monotonic
    reports: Callable[[Begin], Reporter] = lambda _begin: Reporter(None)
    memory: JobMemory | None = None
    leaves: bool = False
    wanted: int | None = None
    turns: StartTurns = field(default_factory=lambda: StartTurns(time.monotonic))
    queue: SlotQueue = field(default_factory=lambda: SlotQueue(time.monotonic))
    runs: dict[str, RunInDriver] = field(default_factory=dict)
    unbegun: list[Over] = field(default_factory=list)
    _doings: dict[str, ArmedTimer | None] = field(default_factory=dict)
    _armed: float = float("-inf")

    def follow(self, pipe: FileIO) -> None:
        """Works until the supervisor says that nothing is left. Without a supervisor the process ends; so it does if this thread fails."""
        announced = False
        try:
            while self._reads(pipe):
                announced = announced or self.up(DriverReads())
                self._arm()
                self.step()
        except BaseException:
            logs.log.exception("the driver of the group failed")
            self.end()
            raise
        faulthandler.cancel_dump_traceback_later()

    def _arm(self) -> None:
        """Once a second: a timer outside of Python ends the process if nothing of Python runs for two minutes."""
        now = self.clock()
        if now - self._armed >= STEP_SECONDS:
            self._armed = now
            faulthandler.dump_traceback_later(LOCKED_SECONDS, exit=True)

    def _reads(self, pipe: FileIO) -> bool:
        """Reads what has come; whether to continue. What has arrived counts before the clock does, for this process may have been paused."""
        wait = LOOK_SECONDS
        while select.select([pipe], [], [], wait)[0]:
            text = pipe.readline()
            if not text.endswith(b"\n"):
                self.end()  # the supervisor is gone
                return False
            if isinstance(message := parsed(text), Leave):
                return False
            self.hear(message)
            wait = 0.0
        return True

    def hear(self, message: Message) -> None:
        """Does what the supervisor says."""
        if isinstance(message, Begin):
            self._begin_alone(message)
        elif isinstance(message, Executors):
            self.wanted = message.count
        elif isinstance(message, (Beat, Lose, Drain)) and (run := self.runs.get(message.name)) is not None:
            run.hear(message)

    def step(self) -> None:
        """Ends what has to end now, and reports what is over."""
        self.unbegun = [over for over in self.unbegun if not self.up(over)]
        for name, here in list(self.runs.items()):
            if (over := here.run.result) is not None:
                self._report(name, over)
                continue
            now = self.clock()
            here.work = here.work.looked(now)
            act = here.work.act(now)
            if act is Act.END_DRIVER:
                logs.warn(f"LeaseLost: work of {name} did not end in time after its lease was lost; the driver ends, with all consumers of the group")
                self.end()
            elif act is Act.END_WORK and now - here.stepped >= STEP_SECONDS:
                here.stepped = now
                here.run.end()

    def _begin_alone(self, begin: Begin) -> None:
        """Begins a run. If that fails, this consumer ends, and no other: nothing of it works, so its lease may be released."""
        try:
            self._begin(begin)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others continue
            logs.warn(f"{begin.name} could not begin: {error!r}")
            self.runs.pop(begin.name, None)
            end = ending_of(error)
            self.unbegun.append(Over(begin.name, begin.generation, end.code, end.reason, shortened(end.message), quiet=True))

    def _begin(self, begin: Begin) -> None:
        config = self.config_of(begin)
        ports = RunPorts(
            self.spark,
            self.share,
            doing=partial(self._doing, begin),
            stuck=partial(self._stuck, config.name),
            began=partial(self.metrics.keep, config.name),
            gone=self.gone,
            reporter=self.reports(begin),
            memory=self.memory,
            turns=self.turns,
            queue=self.queue,
        )
        run = ConsumerRun(config, begin, ports)
        self.runs[begin.name] = RunInDriver(run, EpochWork(begin.generation, config.lease_duration_seconds, begin.sent))
        run.start()

    def _report(self, name: str, over: Over) -> None:
        """A supervisor that is paused takes nothing when the pipe is full: then it is reported later."""
        if self.up(over):
            if self.leaves:
                self.metrics.forget(self.runs[name].run.name)
            del self.runs[name]
            self._doings.pop(name, None)

    def _doing(self, begin: Begin, armed: ArmedTimer | None) -> None:
        self._doings[begin.name] = armed
        self.up(Doing(begin.name, begin.generation, armed.batch if armed else 0, armed.phase if armed else ""))

    def _stuck(self, name: str, reason: str, message: str) -> None:
        words = f"{message}. The driver ends with all consumers of the group; {name} is the cause. Open batches come again"
        report(Ending(1, reason, words, working=(name,)))
        leave(1)

    def gone(self) -> None:
        """Spark has ended: ends the driver. Without this each consumer would be begun again for ever, and fail each time."""
        names = {key: here.run.name for key, here in list(self.runs.items())}
        working = tuple(names[key] for key, armed in list(self._doings.items()) if armed and armed.phase == PROCESS and key in names)
        why = "Spark has ended, or did not answer: the driver ends with all consumers of the group. Open batches come again"
        report(Ending(1, "SparkGone", why, working=working))
        leave(1)
