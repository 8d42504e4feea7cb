"""What Argo CD shows of an object by the chart's health check, run by a real Lua (Argo CD runs 5.1 as Go code; the check uses nothing newer)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from lupa import LuaRuntime

SCRIPT = Path(__file__).parents[1] / "charts" / "sluice" / "argocd" / "KinesisConsumer" / "health.lua"


@cache
def _checked() -> tuple[Any, Any]:
    lua = LuaRuntime()
    return lua, lua.eval(f"function(obj) {SCRIPT.read_text()} end")


def argo_health(body: dict[str, Any]) -> str:
    """Healthy, Progressing, Degraded or Suspended."""
    lua, check = _checked()
    return str(check(lua.table_from(body, recursive=True)).status)
