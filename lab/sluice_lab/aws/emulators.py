"""Emulated DynamoDB, Kinesis, SQS and S3, each on a port of its own. They end with the program that started them.

`host` is an address of this machine: 127.0.0.1, or one that pods reach too (`cluster.host_address`). The Kinesis emulators, moto and dynalite listen
only there. DynamoDB Local has no such setting and listens on every address.
"""

import http.client
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError
from sluice_lab.machine import downloads, processes, tools
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.machine.processes import Program, Running

S3_ACCESS_KEY, S3_SECRET_KEY = "tests", "tests"
START_SECONDS = 60.0  # on an idle machine they need one or two
SHARD_LIMIT = 500  # an account's limit in large regions; the default of kinesis-local is 50, of kinesalite 10


@dataclass(frozen=True)
class Emulator:
    """An emulator that answers at `endpoint`; `stop` ends it."""

    endpoint: str
    running: Running

    def stop(self) -> None:
        """Stop it. Its data is lost."""
        self.running.stop()


@contextmanager
def dynamodb_local(work: Path, host: str = LOOPBACK, port: int | None = None) -> Iterator[str]:
    """Run DynamoDB Local while the block lasts; yields its endpoint."""
    yield from _while(start_dynamodb_local(work, host, port))


@contextmanager
def kinesis_local(work: Path, host: str = LOOPBACK, port: int | None = None) -> Iterator[str]:
    """Run kinesis-local while the block lasts; yields its endpoint. Prefer it: it has ChildShards."""
    yield from _while(start_kinesis_local(work, host, port))


@contextmanager
def kinesalite(work: Path, host: str = LOOPBACK, port: int | None = None) -> Iterator[str]:
    """Run kinesalite while the block lasts; yields its endpoint. A second implementation: it has no ChildShards and no ShardFilter."""
    yield from _while(start_kinesalite(work, host, port))


@contextmanager
def dynalite(work: Path, host: str = LOOPBACK, port: int | None = None) -> Iterator[str]:
    """Run dynalite while the block lasts; yields its endpoint. Its tables are CREATING for a while, like real ones. It has no transactions."""
    yield from _while(start_dynalite(work, host, port))


@contextmanager
def moto(work: Path, host: str = LOOPBACK, port: int | None = None) -> Iterator[str]:
    """Run moto's server while the block lasts; yields its endpoint. It is the only one here that has SQS."""
    yield from _while(start_moto(work, host, port))


@contextmanager
def s3(work: Path, host: str = LOOPBACK, port: int | None = None) -> Iterator[str]:
    """Run an S3 server while the block lasts; yields its endpoint. What it holds goes with it."""
    emulator = start_s3(work, host, port)
    try:
        yield emulator.endpoint
    finally:
        emulator.stop()
        shutil.rmtree(work / "run" / f"s3-{emulator.endpoint.rpartition(':')[2]}", ignore_errors=True)


def start_dynamodb_local(work: Path, host: str = LOOPBACK, port: int | None = None) -> Emulator:
    """Start DynamoDB Local, with one database for all regions and credentials."""
    port = free_port(host, port)
    release, home = downloads.dynamodb_local()
    java = ("java", "-Xmx512m", "-XX:+UseSerialGC", f"-Djava.library.path={home}", "-cp", f"{home}/*", release.main)
    arguments = ("-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port))
    return start(work, Program(f"dynamodb-local-{port}", (*java, *arguments), cwd=home), host, port)


def start_kinesis_local(work: Path, host: str = LOOPBACK, port: int | None = None) -> Emulator:
    """Start kinesis-local: plain HTTP, JSON and CBOR. It creates, splits and merges within 100 ms."""
    port = free_port(host, port)
    home = downloads.node_modules() / "kinesis-local"
    seconds = ("CREATE_STREAM", "DELETE_STREAM", "SPLIT_SHARD", "MERGE_SHARDS", "UPDATE_SHARD_COUNT")
    env = {
        **{f"{name}_DURATION": "100ms" for name in seconds},
        "KINESIS_MOCK_PLAIN_PORT": str(port),
        "KINESIS_MOCK_TLS_PORT": str(free_port(host)),
        "KINESIS_MOCK_CERT_PATH": str(home / "server.json"),
        "SHARD_LIMIT": str(SHARD_LIMIT),
        "LOG_LEVEL": "ERROR",
    }
    return start(work, _node(f"kinesis-local-{port}", host, env, str(home / "main.js")), host, port)


def start_kinesalite(work: Path, host: str = LOOPBACK, port: int | None = None) -> Emulator:
    """Start kinesalite. It creates and changes streams within 100 ms."""
    port = free_port(host, port)
    times = (f"--{what}StreamMs=100" for what in ("create", "delete", "update"))
    cli = str(downloads.node_modules() / "kinesalite" / "cli.js")
    script = (cli, f"--port={port}", f"--shardLimit={SHARD_LIMIT}", *times)
    return start(work, _node(f"kinesalite-{port}", host, {}, *script), host, port)


def start_dynalite(work: Path, host: str = LOOPBACK, port: int | None = None) -> Emulator:
    """Start dynalite. A table is CREATING for a second, and DELETING for a minute."""
    port = free_port(host, port)
    cli = str(downloads.dynalite_modules() / "dynalite" / "cli.js")
    return start(work, _node(f"dynalite-{port}", host, {}, cli, f"--port={port}", "--createTableMs=1000", "--deleteTableMs=60000"), host, port)


def start_moto(work: Path, host: str = LOOPBACK, port: int | None = None) -> Emulator:
    """Start moto's server: all services of AWS at one endpoint, without limits of throughput."""
    port = free_port(host, port)
    return start(work, Program(f"moto-{port}", (sys.executable, "-m", "moto.server", "-H", host, "-p", str(port))), host, port)


def start_s3(work: Path, host: str = LOOPBACK, port: int | None = None) -> Emulator:
    """Start versitygw over a new folder: a real S3 server, on disk. Its buckets are folders. An object cannot be the parent of another."""
    port = free_port(host, port)
    home = places.made(work / "run" / f"s3-{port}")
    folders = (places.made(home / "buckets"), places.made(home / "metadata"))
    flags = ("--access", S3_ACCESS_KEY, "--secret", S3_SECRET_KEY, "--region", "us-east-1", "--port", f"{host}:{port}", "--quiet")
    accounts = ("--iam-dir", str(places.made(home / "accounts")))
    program = (tools.versitygw(), *flags, *accounts, "posix", "--sidecar", str(folders[1]), str(folders[0]))
    return start(work, Program(f"s3-{port}", program), host, port)


def make_s3_account(endpoint: str, access_key: str, secret_key: str) -> None:
    """Makes an account on a running S3 server, which has no right on the buckets of others."""
    admin = (tools.versitygw(), "admin", "--access", S3_ACCESS_KEY, "--secret", S3_SECRET_KEY, "--endpoint-url", endpoint)
    processes.run(*admin, "create-user", "--access", access_key, "--secret", secret_key, "--role", "user")


def _node(name: str, host: str, env: dict[str, str], *script: str) -> Program:
    preload = Path(__file__).with_name("listen.cjs")
    return Program(name, ("node", "--require", str(preload), *script), env={**env, "LISTEN_HOST": host})


def start(work: Path, program: Program, host: str, port: int) -> Emulator:
    """Start a server, and wait until it answers.

    Raises:
        LabError: it ended, or does not answer in time; the message has the end of its log.
    """
    running = processes.start(places.made(work), program)
    if not processes.poll(lambda: _answers(host, port) or not running.alive(), START_SECONDS) or not running.alive():
        running.stop()
        log = processes.tail(running.log.read_text(errors="replace"))
        raise LabError(f"{program.name} does not answer at {host}:{port}; its log, {running.log}, ends:\n{log}")
    return Emulator(f"http://{host}:{port}", running)


def _while(emulator: Emulator) -> Iterator[str]:
    try:
        yield emulator.endpoint
    finally:
        emulator.stop()


def _answers(host: str, port: int) -> bool:
    """Whether an HTTP server answers there, with any status."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
