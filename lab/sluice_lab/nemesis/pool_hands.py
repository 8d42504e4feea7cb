"""Does to a pool and its members what their owners do, and what goes wrong in a neighbour's pipeline."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_lab.nemesis import pooled
from sluice_lab.nemesis.manifest import NAME
from sluice_lab.nemesis.schedule import Fault, FaultKind

Undo = Callable[[], None]
FILES = {FaultKind.HANG: "hang", FaultKind.FAIL_NEIGHBOUR: "down"}  # of the sink's folder (sink.py)


@dataclass
class PoolHands:
    """The hands on one pool.

    Attributes:
        kubectl: in the pool's namespace.
        on_node: runs a line of shell on the node.
        root: the folder of the sinks on the node.
        alone: the patch that moves the consumer under test out of the pool.
    """

    kubectl: Callable[..., str]
    on_node: Callable[[str], str]
    root: str
    alone: Mapping[str, Any]
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def inject(self, fault: Fault) -> tuple[str, Undo] | None:
        """Inject a fault that is about members; returns its victim, and how to undo it. None: it is about something else."""
        if fault.kind is FaultKind.LEAVE:
            self._patch(NAME, self.alone)
            return NAME, lambda: self._patch(NAME, pooled.enter())
        if fault.kind is FaultKind.SUSPEND:
            self._patch(pooled.TROUBLED, {"suspend": True})
            return pooled.TROUBLED, lambda: self._patch(pooled.TROUBLED, {"suspend": False})
        return self._flag(FILES[fault.kind]) if fault.kind in FILES else None

    def restart(self) -> None:
        """Restart the pool's pod, as a user would."""
        self.kubectl("annotate", f"kcp/{NAME}", "--overwrite", f"sluice.dev/restart=nemesis-{next(self._numbers)}")

    def scale(self, count: int) -> str:
        """Scale the pool, as a user would."""
        self.kubectl("scale", f"kcp/{NAME}", f"--replicas={count}")
        return ""

    def _flag(self, name: str) -> tuple[str, Undo]:
        path = f"{pooled.folder(self.root, pooled.TROUBLED)}/{name}"
        self.on_node(f"touch {path}")

        def undo() -> None:
            self.on_node(f"rm -f {path}")

        return pooled.TROUBLED, undo

    def _patch(self, name: str, spec: Mapping[str, Any]) -> None:
        self.kubectl("patch", f"kc/{name}", "--type=merge", f"--patch={json.dumps({'spec': spec})}")
