"""Numbers before nouns in our modules: `{count} shards` is wrong for one.

What is right is `counted` of `sluice_checkpoints.names` or `sluice_operator.names`.
"""

import ast
import re
from collections.abc import Iterator

from sluice_lab.places import REPO
from sluice_lab.site.prose_of_code import documented
from sluice_lab.site.sentences import habits

BOUND = re.compile(r"\b(?:more|less|fewer) than $")  # a limit of ours, which is more than one
FRACTION = re.compile(r"^ of (?:the )?$")  # `2 of 3 shards`: the noun is that of the whole
BATCH = re.compile(r"\b(?:batch|attempt) $")  # a number that counts nothing


def plurals() -> Iterator[str]:
    """What is wrong with modules: a plural after a number that may be 1."""
    for name in sorted(set(documented()) - set(habits().figures)):
        yield from (f"{name}:{each}" for each in findings((REPO / name).read_text()))


def findings(code: str) -> Iterator[str]:
    """`line: what is wrong`, of a module."""
    noun = re.compile(rf" (?:(?:more|new|open|other|dead|user) )?(?:{'|'.join(habits().counted)})\b(?!/)")
    for text in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.JoinedStr)):
        for at, part in enumerate(text.values[1:], 1):
            found = noun.match(_words(part))
            if found and isinstance(number := text.values[at - 1], ast.FormattedValue) and not _many(number, text.values[: at - 1]):
                yield f"{text.lineno}: '{ast.unparse(number.value)}{found[0]}' may be 1: write counted(…)"


def _many(number: ast.FormattedValue, before: list[ast.expr]) -> bool:
    """Whether a number is none, a limit, or a part's whole: a noun after it is a plural in any case."""
    written = number.value.attr if isinstance(number.value, ast.Attribute) else ast.unparse(number.value)
    words = [_words(part) for part in before[-3:]]
    whole = bool(words) and FRACTION.match(words[-1]) is not None and len(before) > 1 and not (len(words) == 3 and BATCH.search(words[0]))
    called = isinstance(number.value, ast.Call) and ast.unparse(number.value.func).endswith("counted")
    return written.isupper() or called or whole or bool(words and BOUND.search(words[-1]))


def _words(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else ""
