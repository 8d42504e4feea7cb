"""`python tests/kubectl/screens.py docs/kubectl.md …` writes the screens of these pages as text, and docs/pictures (`make generate`).

They are what the program prints over one fleet. `<!-- screen of NAME: … -->` is of that trouble's cluster instead (`troubles`). `kubectl get` is
drawn from the CRD's columns, as the API server does it.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import troubles
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from scene import Scene, resource
from shown_table import shown

from sluice_kubectl.screens.words import age
from sluice_lab.fakes.cluster import MemoryCluster
from sluice_lab.generate.crd import COLUMNS
from sluice_operator.cluster.port import CONSUMER_KIND

BLOCK = re.compile(r"(<!-- screen(?: of (\w+))?: (.+?) -->\n```\n).*?(```\n<!-- end -->)", re.DOTALL)
CONDITION = re.compile(r"\[\?\(@\.type=='(\w+)'\)\]")
EITHER = re.compile(r"\[((?:'\w+',?)+)\]$")
PICTURES = {"status": "kubectl sluice status", "status-orders": "kubectl sluice status orders", "shards": "kubectl sluice shards orders"}
PICTURE_WIDTH = 112  # columns: on a page they are still read without a click
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
FORMAT = re.sub(r"\s*@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace("Fira Code, monospace", FONTS)
MADE = datetime(2026, 11, 21, 10, tzinfo=UTC)
PICTURES_FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SCRAPE = """# TYPE sluice_shard_millis_behind_latest gauge
sluice_shard_millis_behind_latest{shard="shardId-000000000000"} 1200.0
sluice_shard_millis_behind_latest{shard="shardId-000000000001"} 0.0
sluice_shard_millis_behind_latest{shard="shardId-000000000002"} 133000.0
sluice_shard_millis_behind_latest{shard="shardId-000000000003"} 0.0
# TYPE sluice_shard_retention_used_ratio gauge
sluice_shard_retention_used_ratio{shard="shardId-000000000002"} 0.02
"""


def fleet() -> Scene:
    """Five consumers: one works, one starts, one's migration failed, one's driver is on a lost node, one is suspended."""
    scene = Scene(MemoryCluster(lambda: MADE))
    orders = resource("running")
    orders["spec"]["onError"] = {"deadLetter": {"path": "s3a://lake/dead-letters"}}
    scene.put(orders)
    scene.driver("orders")
    stream = scene.get()["status"]["stream"] | {
        "millisBehindLatest": 133_000,
        "recordsPerSecond": 52.1,
        "busy": 0.42,
        "batch": 124,
        "records": 61_432,
        "deadLetters": 3,
    }
    versions = [
        {"firstBatch": 61, "since": "2026-11-21T10:00:04Z", "hash": "51e7d92c08ab", "image": "registry.example/orders:1.5.0"},
        {"firstBatch": 1, "since": "2026-11-20T09:10:30Z", "hash": "9a41c0d27be6", "image": "registry.example/orders:1.4.0"},
    ]
    scene.cluster.set_status("KinesisConsumer", "default", "orders", {"stream": stream, "versions": versions})
    scene.put(resource("starting", name="views"))
    scene.put(resource("migration_failed", name="clicks"))
    scene.put(resource("driver_overdue", name="payments"))
    scene.driver("payments")
    scene.cluster.delete("Pod", "default", "payments-driver-1", scene.get(name="payments")["status"]["driver"]["uid"])
    scene.put(resource("suspended", name="archive"))
    for reason, message, at, warning in (
        ("Accepted", "taken over by the operator", "2026-11-21T10:00:01Z", False),
        ("DriverStarting", "attempt 1: orders-driver-1", "2026-11-21T10:00:03Z", False),
        ("DriverReady", "4 open shards, 2 executors", "2026-11-21T10:00:06Z", False),
        (
            "PoisonExcluded",
            "shardId-000000000003: record 4959…/0 failed 5 times; it is in the dead letters, and not in batch 44",
            "2026-11-21T10:04:10Z",
            True,
        ),
    ):
        scene.event(reason, message, at, warning=warning)
    scene.texts.scrapes["orders-driver-1"] = SCRAPE
    for pod in ("orders-driver-1", "orders-1-exec-1", "orders-1-exec-2"):
        scene.texts.logs[pod] = ["10:10:26 INFO batch 124 committed: 512 records of 4 shards"]
    return scene


def screen(command: str, trouble: str | None = None) -> str:
    """What a command prints over that fleet, or over a trouble's cluster: stdout, then stderr. `sluice show` is of one table (`shown_table`).

    Files that it writes go to a folder that is thrown away.
    """
    if command.startswith("sluice show"):
        return shown(command)
    scene = troubles.scene(trouble) if trouble else fleet()
    if command.startswith("kubectl get kc"):
        return listed(scene, wide="-o wide" in command)
    with tempfile.TemporaryDirectory() as folder:
        given = [word if not word.endswith(".tar.gz") else f"{folder}/{word}" for word in command.split()[2:]]
        answer = scene.run(*given)
        said = (answer.said + answer.told).replace(f"{folder}/", "")
    return "\n".join(line.rstrip() for line in said.splitlines()) + "\n"


def listed(scene: Scene, *, wide: bool) -> str:
    shown = [("NAME", "string", ".metadata.name", 0), *(column for column in COLUMNS if wide or not column[3])]
    bodies = sorted(scene.cluster.all(CONSUMER_KIND), key=lambda body: str(body["metadata"]["name"]))
    rows = [[name.upper() for name, *_ in shown], *([_cell(body, path, kind, scene) for _, kind, path, _ in shown] for body in bodies)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _cell(body: Any, path: str, kind: str, scene: Scene) -> str:
    """Of several fields at the end of a path (`['a','b']`), the first one that is there."""
    if names := EITHER.search(path):
        cells = (_cell(body, f"{path[: names.start()]}.{name}", kind, scene) for name in names[1].replace("'", "").split(","))
        return next(filter(None, cells), "")
    value = body
    for step in CONDITION.sub(r".\1", path).strip(".").split("."):
        value = next((each for each in value if each["type"] == step), None) if isinstance(value, list) else (value or {}).get(step)
    if value is None:
        return ""
    return age(datetime.fromisoformat(value), scene.now) if kind == "date" else str(value)


def picture(name: str, command: str) -> str:
    """The same in colours, as an SVG that loads nothing: rich's own asks another host for a font."""
    recorder = Console(record=True, file=io.StringIO(), width=PICTURE_WIDTH, highlight=False, force_terminal=True, color_system="truecolor")
    recorder.print(f"[bold]$ {command}[/]")
    fleet().run(*command.split()[2:], recorder=recorder)
    return recorder.export_svg(title="", theme=SVG_EXPORT_THEME, code_format=FORMAT, unique_id=f"sluice-{name}")


def written(page: str) -> str:
    return BLOCK.sub(lambda found: f"{found[1]}$ {found[3]}\n{screen(found[3], found[2])}{found[4]}", page)


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(written(page.read_text()))
    for name, command in PICTURES.items():
        (PICTURES_FOLDER / f"{name}.svg").write_text(picture(name, command))
