"""YAML as kubectl reads it: a plain text is the number, truth or text that the API server gets. Pure.

PyYAML reads another dialect: to it `12:30` is 750, and `y` and `1e3` are texts. kubectl takes whole floats for whole numbers, and dates for texts.
The rules are those of sigs.k8s.io/yaml; a test has what that answered.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import yaml

CORE = "tag:yaml.org,2002:"
PLAIN = (  # tag, pattern, first characters; the first that fits counts
    ("bool", r"y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON|n|N|no|No|NO|false|False|FALSE|off|Off|OFF", "yYtToOnNfF"),
    ("null", r"|~|null|Null|NULL", ["", "~", "n", "N"]),
    ("merge", r"<<", "<"),
    ("int", r"[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|0[0-7_]*|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9_]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+.0123456789"),
)
TRUE = {"y", "yes", "true", "on"}
LARGEST, SMALLEST = 2**64, -(2**63)
SPECIAL = ("inf", "nan")
# Aliases are copied when the values become JSON. kubectl bounds the part of all values that may be copies, and so does this: go-yaml, decode.go.
FEW_ALIASES, FEW_VALUES = 100, 1000  # up to here any part
SMALL, LARGE = 400_000, 4_000_000  # values: up to the first 99 % may be copies, from the second on 10 %
LONGEST = 3 * 1024 * 1024  # characters of copied texts: the API server takes no larger request


class _Loader(yaml.SafeLoader):
    """With the rules above alone."""

    def construct_document(self, node: yaml.Node) -> Any:
        """See PyYAML. Merge keys are written out there, so copies are counted before."""
        refuse_many_copies(node)
        return super().construct_document(node)


def documents(text: str) -> list[Any]:
    """The documents of a file, as values that JSON has.

    Raises:
        ValueError: a value that JSON does not have, such as infinity or bytes, or it is nested too deeply, or aliases repeat too much.
        yaml.YAMLError: not YAML.
    """
    try:
        return list(json.loads(json.dumps(_read(text), allow_nan=False)))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _read(text: str) -> list[Any]:
    if text.lstrip().startswith("{"):
        with contextlib.suppress(json.JSONDecodeError):  # YAML in braces
            return [json.loads(text)]
    return list(yaml.load_all(text, _Loader))


def refuse_many_copies(document: yaml.Node) -> None:
    """Walks over a document as it will be written out, each alias as a copy of what it names. It ends early, because copies are bounded.

    Raises:
        ValueError: there are too many copies, or too long ones. It has the line of one of them.
    """
    seen = set[int]()
    values = copies = length = 0
    waiting = [(document, False)]
    while waiting:
        node, copied = waiting.pop()
        copied = copied or id(node) in seen
        seen.add(id(node))
        values, copies, length = values + 1, copies + copied, length + (copied and len(node.value))
        if length > LONGEST or (copies > FEW_ALIASES and values > FEW_VALUES and copies / values > _allowed_copies(values)):
            line = node.start_mark.line + 1
            raise ValueError(f"aliases copy line {line} and others too often: {copies} of {values} values so far are copies; use fewer aliases")
        waiting += [(child, copied) for child in reversed(_children(node))]


def _allowed_copies(values: int) -> float:
    """The part of so many values that may be copies."""
    return 0.99 - 0.89 * min(max((values - SMALL) / (LARGE - SMALL), 0), 1)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _truth(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    return loader.construct_scalar(node).lower() in TRUE


def _whole(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    text = loader.construct_scalar(node).replace("_", "")
    digits = text.lstrip("+-")
    base = 8 if re.fullmatch("0[0-7]+", digits) else 0
    value = int(digits, base) * (-1 if text.startswith("-") else 1)
    return value if SMALLEST <= value < LARGEST else float(value)


def _real(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int | float:
    text = loader.construct_scalar(node).replace("_", "").lower()
    if text.lstrip("+-").lstrip(".") in SPECIAL:
        return float(text.replace(".", ""))
    value = float(text)
    return int(value) if value.is_integer() and SMALLEST <= value < LARGEST else value


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in PLAIN:
    _Loader.add_implicit_resolver(CORE + _tag, re.compile(f"^(?:{_pattern})$"), list(_first))
for _tag, _construct in (("bool", _truth), ("int", _whole), ("float", _real)):
    _Loader.add_constructor(CORE + _tag, _construct)
