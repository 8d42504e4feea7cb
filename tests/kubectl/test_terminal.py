"""Words of strangers on a screen: text of programs, records and other people's objects moves no cursor, and forges no line."""

from __future__ import annotations

import io
import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from scene import Scene, resource

from sluice_kubectl.api.errors import CommandError
from sluice_kubectl.cli.edge import Terminal
from sluice_kubectl.cli.reading import live
from sluice_operator.cluster.port import Rejected

Json = dict[str, Any]
FORGED = "next         force orders (all is well)"
LABELS = ("stream", "behind", "shards", "letters", "driver", "last end", "failures", "migration", "next")
TITLES = {"Conditions", "Pods", "Last events"}
PARTS = (
    "\x1b[2J\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\r", "\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\u200f", "\x00",
    "\x08\x08", "\ufeff", "\ud800", "\t", FORGED, f"\n{FORGED}\n", "\nConditions\n", "Conditions", "[/]", "[red]", "\\[", ":smile:", "\\", "é",
    "日本", " " * 40, "word " * 30, "x" * 131,
)  # fmt: skip
STRANGE = st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=20)), min_size=1, max_size=8).map("".join)
COMMANDS = (("status",), ("status", "orders"), ("lag",), ("shards", "orders"), ("events", "orders"))
WIDTHS = st.sampled_from((20, 80, 130, 150))


def beset(said: str) -> Scene:
    scene = Scene()
    scene.put(resource("running"))
    scene.driver("orders")
    body = scene.get()
    scene.cluster.edit(body, {"metadata": {"annotations": {"sluice.dev/paused": "false", "note": said}}, "spec": strange_spec(said)})
    scene.cluster.set_status("KinesisConsumer", "default", "orders", strange_status(said))
    waiting = {"ready": False, "restartCount": 1, "state": {"waiting": {"reason": said, "message": said}}}
    scene.cluster.set_status("Pod", "default", "orders-1-exec-1", {"phase": "Pending", "containerStatuses": [waiting]})
    scene.event("Strange", said, "2026-11-21T10:00:03Z", warning=True)
    return scene


def strange_spec(said: str) -> Json:
    return {"stream": {"name": said, "region": said}, "checkpoints": {"table": said}, "onError": {"deadLetter": {"path": said}}}


def strange_status(said: str) -> Json:
    kinds = ("Ready", "Stalled", "SpecValid", "DriverHealthy", "Migrated")
    at = {"lastTransitionTime": "2026-11-21T10:00:00Z", "observedGeneration": 1}
    ended = {"reason": said, "message": said, "code": 1, "at": "2026-11-21T10:00:00Z"}
    return {
        "phase": said,
        "replicas": 1,
        "conditions": [{"type": kind, "status": "True" if kind == "Stalled" else "False", "reason": said, "message": said, **at} for kind in kinds],
        "driver": {"attempt": 1, "pod": said, "uid": said, "stopping": said, "leaving": {"pod": said, "uid": said}, "exit": ended},
        "restarts": {"count": 1, "reason": said, "message": said},
        "migration": {"state": said, "job": "orders-migrate", "message": said},
        "stream": {"deadLetters": 2, "reportedAt": "2026-11-21T10:10:00Z"},
    }


def unprintable(screen: str) -> set[str]:
    return {char for char in screen if char != "\n" and not char.isprintable()}


def heads(screen: str) -> list[str]:
    found = (line.rstrip() for line in screen.splitlines())
    return [line for line in found if line in TITLES or re.match(rf"({'|'.join(LABELS)})  ", line)]


@settings(max_examples=60)
@given(said=STRANGE, width=WIDTHS)
def test_no_screen_has_a_control_character_or_a_forged_line(said: str, width: int) -> None:
    scene = beset(said)
    scene.width = width
    for command in COMMANDS:
        answer = scene.run(*command)
        assert answer.exit_code == 0
        assert unprintable(answer.said + answer.told) == set()
        found = heads(answer.said)
        assert len({line.split("  ")[0] for line in found}) == len(found)
        assert [line for line in found if line.startswith("next")] == []  # no reason that it knows: it has no advice


@settings(max_examples=60)
@given(said=STRANGE)
def test_errors_and_questions_have_no_control_character(said: str) -> None:
    """What the API server says may be a webhook's; a pod's state may be anybody's."""
    scene = beset(said)

    class Refusing:
        def __getattr__(self, _name: str) -> Any:
            def refuse(*_arguments: Any) -> Any:
                raise Rejected("Invalid", said)

            return refuse

    refused = scene.run("status", cluster=Refusing())
    assert refused.exit_code == 65
    assert unprintable(refused.told) == set()
    assert refused.told.count("\n") == 1
    forced = scene.run("force", "orders", "--yes")
    assert unprintable(forced.said + forced.told) == set()


@settings(max_examples=30)
@given(said=STRANGE)
def test_metrics_of_a_driver_are_shown_or_refused_and_move_nothing(said: str) -> None:
    scene = beset("x")
    label = json.dumps(said)[1:-1].encode(errors="replace").decode()
    name = "sluice_shard_millis_behind_latest"
    for scrape in (f'{name}{{shard="{label}"}} 3\n', f"{name} 3\n", f'{name}{{shard="a"}} NaN\n', f'{name}{{shard="a"}} +Inf\n', said):
        scene.texts.scrapes["orders-driver-1"] = scrape
        answer = scene.run("shards", "orders")
        assert answer.exit_code == 0
        assert unprintable(answer.said + answer.told) == set()


def test_a_document_keeps_what_was_said_escaped() -> None:
    answer = beset(f"\x1b[2J\n{FORGED}").run("status", "orders", "-o", "json")
    assert unprintable(answer.said) == set()
    assert json.loads(answer.said)["driver"]["exitMessage"].endswith(FORGED)


def test_logs_stay_raw(orders: Scene) -> None:
    """As with kubectl: colours are the program's own."""
    orders.texts.logs["orders-driver-1"] = ["\x1b[31mred\x1b[0m"]
    assert orders.run("logs", "orders").said == "\x1b[31mred\x1b[0m\n"


def test_an_answer_that_fails_to_come_is_one_printable_line_below_the_last_screen() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=False)

    def look() -> Any:
        raise CommandError(f"no answer: \x1b[2J\n{FORGED}")

    at = Terminal(lambda _target: None, lambda: Scene().now, console, console)  # type: ignore[arg-type, return-value]
    live(at, look, iter((None,)))
    assert unprintable(out.getvalue()) == set()
    assert heads(out.getvalue()) == []
