"""What a change of the CRD takes away: from stored resources, from what clients send, from what people watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

LOWER = ("minimum", "minLength", "minItems")  # raising one refuses what was accepted
UPPER = ("maximum", "maxLength", "maxItems")  # lowering one does
OPEN = "x-kubernetes-preserve-unknown-fields"
FIXED = ("scope", "group", "names")


def taken_away(old: Json, new: Json) -> list[str]:
    """Each thing that the new definition refuses, loses or renames, as a line; empty if it is safe to put over the old one."""
    found = [f"spec.{key} changed" for key in FIXED if old["spec"][key] != new["spec"][key]]
    versions = {version["name"]: version for version in new["spec"]["versions"]}
    for version in old["spec"]["versions"]:
        found += _version(version, versions.get(version["name"]))
    return found


def _version(old: Json, new: Json | None) -> Iterator[str]:
    name = old["name"]
    if new is None or not new["served"]:
        yield f"{name} is not served any more"
        return
    for part in ("status", "scale"):
        if old["subresources"].get(part) != new["subresources"].get(part):
            yield f"{name}: subresource {part} changed"
    columns = {column["name"] for column in new["additionalPrinterColumns"]}
    yield from (f"{name}: column {c['name']} is gone" for c in old["additionalPrinterColumns"] if c["name"] not in columns)
    yield from _schema(name, old["schema"]["openAPIV3Schema"], new["schema"]["openAPIV3Schema"])


def _schema(path: str, old: Json, new: Json) -> Iterator[str]:
    if old.get("type") != new.get("type") or old.get("format") != new.get("format"):
        yield f"{path}: type changed"
    yield from _narrowed(path, old, new)
    yield from (f"{path}.{name}: required now" for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))))
    for name, schema in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            yield f"{path}.{name}: gone"
        else:
            yield from _schema(f"{path}.{name}", schema, new["properties"][name])
    for part in ("items", "additionalProperties"):
        if part in old:
            yield from _schema(f"{path}[]", old[part], new[part]) if part in new else (f"{path}[]: gone",)


def _narrowed(path: str, old: Json, new: Json) -> Iterator[str]:
    if "x-kubernetes-int-or-string" in old and "pattern" not in old:
        return  # a quantity without a form: what Kubernetes' own pattern refuses has never made a pod
    if "enum" in new and not ("enum" in old and set(old["enum"]) <= set(new["enum"])):
        yield f"{path}: fewer values"
    if new.get("pattern", old.get("pattern")) != old.get("pattern"):
        yield f"{path}: another pattern"
    yield from (f"{path}: {key} raised" for key in LOWER if key in new and not (key in old and new[key] <= old[key]))
    yield from (f"{path}: {key} lowered" for key in UPPER if key in new and not (key in old and new[key] >= old[key]))
    for key in (OPEN, "x-kubernetes-int-or-string", "default"):
        if key in old and new.get(key) != old[key] and not (key == OPEN and "properties" in old):  # there the operator refuses the rest
            yield f"{path}: {key} changed"
    rules = {rule["rule"] for rule in old.get("x-kubernetes-validations", ())}
    yield from (f"{path}: new rule {rule['rule']}" for rule in new.get("x-kubernetes-validations", ()) if rule["rule"] not in rules)
