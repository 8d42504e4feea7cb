"""A PostgreSQL server on one address, over a new folder. It ends with the program that started it, and what it holds goes with it.

Its programs are Debian's. PostgreSQL refuses to run as root: a root's server runs as the user `postgres`, who may not see a root's work folder.
So the server's folder is in the system's folder for temporary files.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice_lab import places
from sluice_lab.errors import LabError, MissingPartError
from sluice_lab.machine import docker, processes
from sluice_lab.machine.listening import LOOPBACK, free_port
from sluice_lab.machine.processes import Program, answers, run

USER, PASSWORD = "postgres", "tests"
INSTALLED = Path("/usr/lib/postgresql")  # Debian's folders: one for each major version, none of them on PATH
NO_CLUSTER = Path("/etc/postgresql-common/createcluster.conf")
START_SECONDS = 60.0
SETTINGS = {"unix_socket_directories": "", "fsync": "off", "max_connections": "50"}  # nothing here outlives the machine


@contextmanager
def postgres(work: Path, host: str = LOOPBACK, port: int | None = None) -> Iterator[str]:
    """Run PostgreSQL while the block lasts; yields a URL that its clients take.

    Raises:
        LabError: it is not installed and cannot be installed here, or it does not start.
    """
    port, programs = free_port(host, port), binaries(work)
    with tempfile.TemporaryDirectory(prefix="sluice-postgres-", ignore_cleanup_errors=True) as home:
        data = _initialized(programs, Path(home))
        listening = {"listen_addresses": host, "port": str(port), **SETTINGS}
        settings = [word for name, value in listening.items() for word in ("-c", f"{name}={value}")]
        argv = (*_as_its_user("--pdeathsig", "QUIT"), str(programs / "postgres"), "-D", str(data), *settings)
        running = processes.start(places.made(work), Program(f"postgres-{port}", argv, cwd=Path(home), dies_with_parent=False))
        try:
            _await(running, (str(programs / "pg_isready"), "--quiet", f"--host={host}", f"--port={port}"))
            yield f"postgresql://{USER}:{PASSWORD}@{host}:{port}/postgres"
        finally:
            running.stop()


def binaries(work: Path) -> Path:
    """The folder with the newest server's programs; as root on Debian the lab installs them, and no server of the system's own.

    Raises:
        LabError: there are none.
    """
    with places.lock(work / "postgres.lock"):
        if (found := _found()) is None:
            _install()
            found = _found()
    if found is None:
        raise MissingPartError(f"`initdb` is neither on PATH nor below {INSTALLED}. Install PostgreSQL (Debian: apt-get install postgresql).")
    return found


def _found() -> Path | None:
    homes = [folder.parent for folder in INSTALLED.glob("*/bin/initdb")]
    newest = sorted(homes, key=lambda folder: float(folder.parent.name))
    on_path = shutil.which("initdb")
    return newest[-1] if newest else Path(on_path).resolve().parent if on_path else None


def _install() -> None:
    """Debian's package would make a database of the machine's own, and start a server over it."""
    if docker.may_install() and not NO_CLUSTER.exists():
        places.made(NO_CLUSTER.parent)
        NO_CLUSTER.write_text("create_main_cluster = false\n")
    docker.apt_install("postgresql", unless=("initdb",))


def _initialized(programs: Path, home: Path) -> Path:
    """A folder with an empty database, of the server's user."""
    (home / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        owner = _user()
        for path in (home, home / "password"):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    kinds = ("--auth=scram-sha-256", f"--username={USER}", f"--pwfile={home / 'password'}", "--encoding=UTF8", "--locale=C.UTF-8")
    run(*_as_its_user(), str(programs / "initdb"), "--no-sync", f"--pgdata={home / 'data'}", *kinds, cwd=home)
    return home / "data"


def _as_its_user(*more: str) -> tuple[str, ...]:
    """What goes before a program that may not be root's; a change of user would clear the signal at the parent's end, so both are set here."""
    if shutil.which("setpriv") is None:
        return ()
    owner = _user() if os.geteuid() == 0 else None
    changed = (f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups") if owner else ()
    return ("setpriv", *changed, *more) if changed or more else ()


def _user() -> pwd.struct_passwd:
    """The package's own user, or the one that owns nothing."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam(USER if USER in names else "nobody")


def _await(running: processes.Running, ready: tuple[str, ...]) -> None:
    if not processes.poll(lambda: answers(*ready) or not running.alive(), START_SECONDS) or not running.alive():
        log = processes.tail(running.log.read_text(errors="replace"))
        raise LabError(f"PostgreSQL does not answer; its log, {running.log}, ends:\n{log}")
