"""Attribute values and expressions of DynamoDB, from plain values and conditions. Pure.

Every name goes through ExpressionAttributeNames, for `start`, `bytes` and `state` are reserved words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_checkpoints.protocol.row_kinds import kind_of
from sluice_checkpoints.protocol.rows import Item
from sluice_checkpoints.protocol.table import Absent, AnyOf, AtMost, Below, Condition, Equals, Path, Update

Wire = dict[str, Any]


class UnreadableRow(TypeError):
    """An attribute of this row has a type or a number that a checkpoint table does not use."""

    def __init__(self, key: str, why: Exception) -> None:
        super().__init__(f"row {key}: {why}")
        self.key = key


def to_wire(value: object) -> Wire:
    """One value with its type tag.

    Raises:
        TypeError: a type this table does not use (floats and None among them).
    """
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case frozenset() | set():
            if not value:
                raise TypeError("an empty set cannot be stored")
            return {"SS": sorted(value)}
        case dict():
            return {"M": item_to_wire(value)}
        case list() | tuple():
            return {"L": [to_wire(v) for v in value]}
        case _:
            raise TypeError(f"{type(value).__name__} is not stored in a checkpoint table: {value!r}")


def item_to_wire(item: Mapping[str, Any]) -> Wire:
    """A row, or a map, with type tags."""
    return {name: to_wire(value) for name, value in item.items()}


def from_wire(tagged: Mapping[str, Any]) -> Any:
    """One value without its type tag.

    Raises:
        TypeError: a type this table does not use.
    """
    ((tag, value),) = tagged.items()
    match tag:
        case "S" | "BOOL":
            return value
        case "N":
            return int(value)
        case "SS":
            return frozenset(value)
        case "M":
            return item_from_wire(value)
        case "L":
            return [from_wire(v) for v in value]
        case _:
            raise TypeError(f"attribute type {tag} is not used in a checkpoint table")


def item_from_wire(item: Mapping[str, Any]) -> Item:
    """A row, or a map, without type tags. An attribute that no row of its kind has may be of any type: it is left out if it is not one of ours.

    Raises:
        TypeError: an attribute has a type or a number that this table does not use; of a row it is an `UnreadableRow`.
    """
    try:
        return {name: from_wire(value) for name, value in item.items()}
    except (TypeError, ValueError) as error:
        if "id" not in item:
            raise TypeError(str(error)) from error
        key = str(item["id"].get("S", ""))
        unknown = kind.unknown(item) if (kind := kind_of(key)) else ()
        if not unknown:
            raise UnreadableRow(key, error) from error
        return item_from_wire({name: value for name, value in item.items() if name not in unknown})


class Expressions:
    """Collects the names and values of one request's expressions."""

    def __init__(self) -> None:
        self.placeholders: dict[str, str] = {}  # by name
        self.values: Wire = {}

    def name(self, path: Path) -> str:
        """A placeholder path, such as `#0.#1`."""
        return ".".join(self._placeholder(attribute) for attribute in path)

    def _placeholder(self, attribute: str) -> str:
        return self.placeholders.setdefault(attribute, f"#{len(self.placeholders)}")

    def value(self, value: object) -> str:
        """A placeholder such as `:0`."""
        placeholder = f":{len(self.values)}"
        self.values[placeholder] = to_wire(value)
        return placeholder

    def condition(self, condition: Condition) -> str:
        """One condition as text."""
        match condition:
            case Equals(path, value):
                return f"{self.name(path)} = {self.value(value)}"
            case Below(path, value):
                return f"{self.name(path)} < {self.value(value)}"
            case AtMost(path, value):
                return f"{self.name(path)} <= {self.value(value)}"
            case Absent(path):
                return f"attribute_not_exists({self.name(path)})"
            case AnyOf(conditions):
                return "(" + " OR ".join(self.condition(c) for c in conditions) + ")"

    def conditions(self, conditions: tuple[Condition, ...]) -> str:
        """All of them, joined by AND."""
        return " AND ".join(self.condition(c) for c in conditions)

    def update(self, update: Update) -> str:
        """SET, REMOVE and ADD clauses."""
        clauses = []
        if update.put:
            clauses.append("SET " + ", ".join(f"{self.name(p)} = {self.value(v)}" for p, v in update.put.items()))
        if update.remove:
            clauses.append("REMOVE " + ", ".join(self.name(p) for p in sorted(update.remove)))
        if update.add:
            clauses.append("ADD " + ", ".join(f"{self.name((n,))} {self.value(v)}" for n, v in update.add.items()))
        return " ".join(clauses)

    def request(self) -> Wire:
        """The parts of a request that carry names and values; empty ones may not be sent."""
        names = {placeholder: name for name, placeholder in self.placeholders.items()}
        return ({"ExpressionAttributeNames": names} if names else {}) | ({"ExpressionAttributeValues": self.values} if self.values else {})
