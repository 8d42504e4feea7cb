"""The streaming side of the data source: what Spark's planner process and its tasks run (docs/structured-streaming.md).

The planner's process asks the driver's by calls over a unix socket, one JSON object each way. Spark starts a Python process of its own for a
streaming source; what it may answer depends on the lease and the rows, which are in the driver's. The socket is in a directory that only this user
can enter.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from sluice_checkpoints.errors import Refused, SluiceError
from sluice_consumer.spark import features
from sluice_consumer.spark.batch_read import BatchRead, Group, read

if TYPE_CHECKING:
    from pyarrow import RecordBatch

log = logging.getLogger(__name__)
CLOSE_SECONDS = 5.0
OPTION = "planner"


class ChannelHandler(Protocol):
    """What answers a call."""

    def __call__(self, *values: Any) -> Any:
        """Takes and gives values that JSON has."""
        ...


class ChannelFailed(SluiceError):
    """The driver's process could not answer; the message is its error's."""


class ChannelServer:
    """Answers one client after the other. Two at a time are two readers of one stream, each of which would commit what the other has not seen."""

    def __init__(self, answers: Mapping[str, ChannelHandler], address: str) -> None:
        self._answers, self._address, self._listener = answers, address, Listener(address, "AF_UNIX", backlog=8)
        self._busy, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._accept, name="planner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Takes no more clients. A thread that waits for one hears not of a closed socket, but of a last client, unless it has just had one."""
        self._over.set()
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            Client(self._address, "AF_UNIX").close()
        self._thread.join(CLOSE_SECONDS)  # it is a daemon: at worst it waits for a client until the process ends

    def _accept(self) -> None:
        with self._listener:
            while not self._over.is_set():
                connection = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), name="planner", daemon=True).start()

    def _serve(self, connection: Connection[bytes, bytes]) -> None:
        with connection, contextlib.suppress(EOFError, OSError):  # the planner is gone; what it asked for is kept for the next
            first = self._busy.acquire(blocking=False)
            try:
                while True:
                    connection.send_bytes(self._reply(connection.recv_bytes(), first=first))
            finally:
                if first:
                    self._busy.release()

    def _reply(self, request: bytes, *, first: bool) -> bytes:
        if not first:
            error = "a query may read this source once: make one query of it, and use foreachBatch or persist for a second use"
            return json.dumps({"error": error}).encode()
        call, *values = json.loads(request)
        try:
            return json.dumps({"value": self._answers[call](*values)}).encode()
        except Exception as error:
            log.exception("%s was not answered", call)
            return json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()


@contextlib.contextmanager
def serving(answers: Mapping[str, ChannelHandler]) -> Iterator[str]:
    """Answers calls inside the block; yields the address."""
    directory = tempfile.mkdtemp(prefix="sluice-")  # 0700
    server = ChannelServer(answers, address := str(Path(directory, "planner")))
    try:
        yield address
    finally:
        server.close()
        shutil.rmtree(directory, ignore_errors=True)


class ChannelClient:
    """The planner's side. Connects when it first asks."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Connection[bytes, bytes] | None = None

    def ask(self, call: str, *values: Any) -> Any:
        """The answer.

        Raises:
            Failed: the other side raised.
        """
        self._connection = self._connection or Client(self._address, "AF_UNIX")
        self._connection.send_bytes(json.dumps([call, *values]).encode())
        reply = json.loads(self._connection.recv_bytes())
        if "error" in reply:
            raise ChannelFailed(reply["error"])
        return reply["value"]

    def close(self) -> None:
        """Ends the conversation."""
        if self._connection is not None:
            self._connection.close()


class StreamGroup(Group):
    """The shards of one task, and the batch they are of."""

    def __init__(self, batch: BatchRead, shard_ids: tuple[str, ...]) -> None:
        super().__init__(shard_ids)
        self.batch = batch


@features.supports_available_now
class StreamReader(DataSourceStreamReader):
    """Asks the driver's process about offsets. Pickled to every task, without its connection."""

    def __init__(self, address: str) -> None:
        self._address, self._caller = address, ChannelClient(address)

    def __reduce__(self) -> tuple[type[StreamReader], tuple[str]]:
        return type(self), (self._address,)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names
        """Where a query without checkpoint begins; asked twice."""
        return self._offset("initial")

    def latestOffset(self, start: dict[str, Any] | None = None, limit: object = None) -> dict[str, Any]:  # noqa: ARG002, N802 - the batch's own limits hold
        """The end of the next batch, or `start`; None: Spark did not say where the batch begins (`features.names_the_start`)."""
        return self._offset("latest", start)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of a batch."""
        answer = self._caller.ask("partitions", start, end)
        if answer is None:
            return []
        batch = BatchRead.from_json(answer)
        return [StreamGroup(batch.for_tasks(), group) for group in batch.groups]

    def commit(self, end: dict[str, Any]) -> None:
        """Spark will not ask for this batch again."""
        self._caller.ask("finish", end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The query ends when everything is processed that had arrived by now."""
        self._caller.ask("until_now")

    def stop(self) -> None:
        """The query is over."""
        self._caller.close()

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """A task, as in a batch read."""
        assert isinstance(partition, StreamGroup)  # noqa: S101 - Spark gives back what partitions() made
        return read(partition.batch, partition)

    def _offset(self, call: str, *values: dict[str, Any] | None) -> dict[str, Any]:
        offset: dict[str, Any] = self._caller.ask(call, *values)
        return offset


def from_options(options: Mapping[str, str]) -> StreamReader:
    """The reader of a source.

    Raises:
        Refused: there is none.
    """
    if OPTION not in options:
        raise Refused("readStream needs a source that holds the lease: see sluice_consumer.streaming.source")
    return StreamReader(options[OPTION])
