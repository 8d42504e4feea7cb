"""The user's modules: those in the folder of the pipeline's module. When one of them is saved, all are imported again."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from pyspark import cloudpickle

LOOK_SECONDS = 0.3
OURS = "sluice_consumer"  # a built-in pipeline lies beside modules that the running driver has
Seen = dict[Path, int]


class UserModules:
    """See the module.

    Attributes:
        folder: where they are.
    """

    def __init__(self, entrypoint: str) -> None:
        name = entrypoint.partition(":")[0]
        self.folder = next((place.parent for place in map(Path, _places(name)) if place.exists()), Path.cwd())

    def forget(self) -> None:
        """Makes the next import read them again. Tasks get their functions by value, for Spark's workers keep what they have imported."""
        for name in self._loaded():
            del sys.modules[name]
        importlib.invalidate_caches()

    def send_by_value(self) -> None:
        """What tasks run of them is sent along."""
        for name in self._loaded():
            cloudpickle.register_pickle_by_value(sys.modules[name])

    def seen(self) -> Seen:
        """All files of Python there, and when each was saved."""
        return {path: path.stat().st_mtime_ns for path in self.folder.glob("*.py") if path.exists()}

    def watch(self, over: threading.Event, saved: Callable[[], None]) -> None:
        """Calls `saved` after every change, in a thread of its own, until `over`."""

        def poll() -> None:
            before = self.seen()
            while not over.wait(LOOK_SECONDS):
                if (now := self.seen()) != before:
                    before = now
                    saved()

        threading.Thread(target=poll, name="reload", daemon=True).start()

    def _loaded(self) -> list[str]:
        files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items() if name != "__main__"}
        return [name for name, file in files.items() if file and Path(file).parent == self.folder and name.partition(".")[0] != OURS]


def _places(name: str) -> list[Path]:
    below = name.replace(".", "/")
    return [Path(path or ".").resolve() / end for path in sys.path for end in (f"{below}.py", f"{below}/__init__.py")]
