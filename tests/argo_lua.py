"""What Argo CD would make of the Lua scripts that the chart ships, run by a real Lua of the version that Argo CD has (5.1, there as Go code)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from lupa.lua51 import LuaRuntime, lua_type

Json = dict[str, Any]
CUSTOMIZATION = Path(__file__).parents[1] / "charts" / "sluice" / "argocd" / "sluice.dev" / "KinesisConsumer"
CLOCK = "2026-11-25T12:00:00Z"


@cache
def _script(name: str) -> tuple[Any, Any]:
    lua = LuaRuntime()
    lua.execute(f"os.date = function(format) assert(format == '!%Y-%m-%dT%H:%M:%SZ') return '{CLOCK}' end")
    return lua, lua.eval(f"function(obj) {(CUSTOMIZATION / name).read_text()} end")


def _run(name: str, body: Json) -> Any:
    lua, function = _script(name)
    return _plain(function(lua.table_from(body, recursive=True)))


def _plain(value: Any) -> Any:
    """Lua knows one kind of table: keys 1, 2, … make a list, and an empty one is neither."""
    if lua_type(value) != "table":
        return value
    found = {key: _plain(each) for key, each in value.items()}
    return list(found.values()) if found and list(found) == list(range(1, len(found) + 1)) else found


def argo_health(body: Json) -> str:
    return str(health(body)["status"])


def health(body: Json) -> Json:
    found: Json = _run("health.lua", body)
    return found


def actions(body: Json) -> Json:
    found: Json = _run("actions/discovery.lua", body)
    return found


def act(action: str, body: Json) -> Json:
    """The resource as the action leaves it. The clock stands at CLOCK."""
    found: Json = _run(f"actions/{action}/action.lua", body)
    return found


def same(one: Json, other: Json) -> bool:
    """Whether two resources are equal but for what Lua cannot tell: empty tables."""
    return bool(_without_empty(one) == _without_empty(other))


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: kept for key, each in value.items() if (kept := _without_empty(each)) not in ({}, [])}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value
