"""Every command, with a standard output that takes nothing or not every character: what was done counts, and no traceback says otherwise."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pytest
from diagnosing import DIAGNOSE, Scene
from exporting.bench import Bench as ExportBench
from migrating.bench import Bench
from resetting.bench import Bench as ResetBench

from sluice_checkpoints.cli import adopt, diagnose, export, migrate, reset, show
from sluice_checkpoints.cli.main import main
from sluice_checkpoints.protocol.row_kinds import OwnTable

REPOSITORY = Path(__file__).parents[3]
REGION = ["--region", "us-east-1"]
COMMANDS = {
    "migrate": ["migrate", "--source", "orders-kcl", "--stream", "orders", "--target", "sluice-orders", *REGION],
    "show": ["show", "--table", "sluice-orders", *REGION],
    "adopt": ["adopt", "--table", "sluice-orders", *REGION],
    "diagnose": DIAGNOSE,
    "export": ["export", "--format", "kcl", "--table", "sluice-orders", "--to", "orders_checkpoints", "--stream", "orders", *REGION],
    "reset": ["reset", "--table", "sluice-orders", "--stream", "orders", "--to", "trimHorizon", "--yes", *REGION],
    "dead-letters list": ["dead-letters", "list", "--path", "letters"],
    "dead-letters show": ["dead-letters", "show", "--path", "letters", "nothing"],
}
TO_BE_READ = {"show", "dead-letters list"}  # commands that have no other result


@dataclass
class Ended:
    code: int
    log: str
    termination: Any


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What all commands run over: a migrated consumer that is a copy, a KCL table, no dead letter."""
    bench, scene, back, moved = Bench(), Scene(), ExportBench(), ResetBench()
    Bench.migrator(bench, target="before").run()
    table = bench.targets.tables["before"]
    table.rows["consumer"]["tableId"] = "another"
    bench.rows[1]["leaseOwner"] = {"S": "wörker → 1"}
    monkeypatch.setattr(migrate, "_ports", lambda _options, output: replace(bench.world(), progress=migrate.LoggedProgress(output.log)))
    monkeypatch.setattr(show, "client", lambda _endpoint: None)
    monkeypatch.setattr(show, "own_table", lambda _name, _api: OwnTable(table))
    monkeypatch.setattr(adopt, "client", lambda _endpoint: None)
    monkeypatch.setattr(adopt, "DynamoTargets", lambda _api: type("Found", (), {"identity": lambda _self, _name: "this"})())
    monkeypatch.setattr(adopt, "DynamoTable", lambda _name, _api: table)
    monkeypatch.setattr(diagnose, "_sight", scene.sight)
    monkeypatch.setattr(export, "_ports", lambda _options, output: replace(back.world(), progress=migrate.LoggedProgress(output.log)))
    monkeypatch.setattr(reset, "_ports", lambda _options, _now, output: moved.ports(progress=migrate.LoggedProgress(output.log)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()


class Broken(io.RawIOBase):
    def __init__(self, error: OSError) -> None:
        self._error = error

    def writable(self) -> bool:
        return True

    def write(self, _data: Any) -> int:
        raise self._error


def stream(kind: str) -> Any:
    """A standard output: in order, of a program that was started with it closed, on a full disk, to a reader that left, or of a plain locale."""
    match kind:
        case "closed":
            return None
        case "full":
            return io.TextIOWrapper(io.BufferedWriter(Broken(OSError(28, "No space left on device"))), "utf-8")
        case "left":
            return io.TextIOWrapper(io.BufferedWriter(Broken(BrokenPipeError(32, "Broken pipe"))), "utf-8")
        case _:
            return io.TextIOWrapper(io.BytesIO(), "ascii" if kind == "ascii" else "utf-8")


@pytest.fixture
def call(fakes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ended]]:
    del fakes
    left: list[Any] = []

    def run(kind: str, *arguments: str) -> Ended:
        termination = tmp_path / "termination"
        monkeypatch.setenv("SLUICE_TERMINATION_LOG", str(termination))
        log = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream(kind))
            patch.setattr(sys, "stderr", log)
            left.append(sys.stdout)
            with pytest.raises(SystemExit) as end:
                main.main(list(arguments), standalone_mode=False)
        log.flush()
        found = json.loads(termination.read_text()) if termination.exists() else None
        return Ended(int(end.value.code or 0), log.buffer.getvalue().decode(), found)  # type: ignore[attr-defined]

    yield run
    for each in left:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            each.detach()


def leaves(group: click.Group, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, f"{before}{name} ")
        else:
            yield before + name


def test_every_command_is_tried() -> None:
    """A new one has to be added here."""
    assert set(leaves(main)) == set(COMMANDS)


@pytest.mark.parametrize("kind", ["closed", "full", "left", "ascii"])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["people", "json"])
def test_a_result_that_cannot_be_printed_does_not_change_what_was_done(call: Callable[..., Ended], name: str, kind: str, more: list[str]) -> None:
    ended = call(kind, *COMMANDS[name], *more)
    lost = kind in {"closed", "full"} and (name != "dead-letters show" or bool(more))  # its refusal is on stderr
    wanted = {"dead-letters show": 65}.get(name, int(lost and name in TO_BE_READ))
    assert ended.code == wanted
    assert "Traceback" not in ended.log
    assert ("was not written to stdout" in ended.log) == lost
    if name in {"migrate", "export", "reset"}:
        assert ended.termination["state"] in {"COMPLETE", "EXPORTED", "RESET"}


@pytest.mark.parametrize("name", ["migrate", "export", "reset"])
def test_a_finished_command_keeps_its_termination_message_whatever_comes_after(
    call: Callable[..., Ended], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a bug in printing")

    monkeypatch.setattr("sluice_checkpoints.cli.report._plan_grid", broken)
    monkeypatch.setattr(export, "_grid", broken)
    monkeypatch.setattr(reset, "_grid", broken)
    ended = call("in order", *COMMANDS[name])
    assert (ended.code, ended.termination["state"]) == (0, {"migrate": "COMPLETE", "export": "EXPORTED", "reset": "RESET"}[name])
    assert "a bug in printing" in ended.log


@pytest.mark.parametrize(("kind", "code"), [("left", 0), ("full", 1), ("closed", 1), ("ascii", 0)])
def test_the_program_itself_ends_so(tmp_path: Path, kind: str, code: int) -> None:
    """As a shell starts it: `| head -1`, `> /dev/full`, `>&-`, `PYTHONIOENCODING=ascii`."""
    redirected = {"left": "| true", "full": "> /dev/full", "closed": ">&-", "ascii": "> out"}[kind]
    line = f"set -o pipefail; {sys.executable} -m sluice_checkpoints dead-letters list --path {tmp_path} {redirected}"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "consumer"), "PYTHONIOENCODING": "ascii" if kind == "ascii" else "utf-8"}
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
