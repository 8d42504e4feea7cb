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


class _Loader(yaml.SafeLoader):
    """With the rules above alone."""


def documents(text: str) -> list[Any]:
    """The documents of a file, as values that JSON has.

    Raises:
        ValueError: a value that JSON does not have, such as infinity or bytes; or nested too deeply.
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
