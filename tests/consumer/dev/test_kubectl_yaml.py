"""What kubectl makes of plain texts: answers of sigs.k8s.io/yaml 1.4.0, recorded 2026-11-26."""

from __future__ import annotations

import json

import pytest
import yaml

from sluice_consumer.dev.kubectl_yaml import documents

ANSWERS = """
12:30:00 "12:30:00"
12:30 "12:30"
1e-3 0.001
1e3 1000
1E+2 100
y true
Y true
n false
yes true
No false
on true
OFF false
true true
tRUE "tRUE"
0o17 15
017 15
08 8
0x1F 31
0b101 5
-0b11 -3
1_000 1000
+5 5
-7 -7
5. 5
.5 0.5
500.0 500
1e1 10
1.25 1.25
1_0.5 10.5
18446744073709551615 18446744073709551615
9223372036854775808 9223372036854775808
-9223372036854775808 -9223372036854775808
2026-11-24 "2026-11-24"
2026-11-24T00:00:00Z "2026-11-24T00:00:00Z"
~ null
null null
0 0
00 0
-0 0
"7" "7"
'yes' "yes"
= "="
1e "1e"
0x "0x"
1__2 12
12e03 12000
0.1 0.1
100000000000000000000000 1e+23
3.0e2 300
"""


@pytest.mark.parametrize("row", ANSWERS.strip().splitlines())
def test_a_plain_text_is_what_kubectl_makes_of_it(row: str) -> None:
    """A manifest that runs here does the same when it is applied."""
    text, answer = row.split(" ", maxsplit=1)
    (found,) = documents(f"v: {text}\n")
    assert (found["v"], type(found["v"])) == (json.loads(answer), type(json.loads(answer)))


@pytest.mark.parametrize("text", ["v: .inf", "v: -.Inf", "v: .nan", "v: !!binary aGVsbG8=", "v: " + "[" * 3000 + "]" * 3000])
def test_what_json_does_not_have_is_no_value(text: str) -> None:
    """The API server would never get it."""
    with pytest.raises(ValueError, match=r"JSON|recursion"):
        documents(text)


def test_json_with_tabs_is_read() -> None:
    """YAML takes no tabs, kubectl does."""
    assert documents('{\n\t"a": [1]\n}') == [{"a": [1]}]


def test_yaml_in_braces_is_no_json() -> None:
    assert documents("{a: [y, 12:30]}") == [{"a": [True, "12:30"]}]


def laughs(levels: int, row: str = "a{0}: &a{0} [{1}]", repeats: int = 9) -> str:
    lines = [row.format(level, ", ".join([f"*a{level - 1}"] * repeats)) for level in range(1, levels)]
    return "\n".join(["a0: &a0 {word: lol}", *lines]) + "\n"


BOMBS = {
    "a list": laughs(30),
    "a map": laughs(30, "a{0}: &a{0} {{x: [{1}]}}"),
    "a merge key": laughs(30, "a{0}: &a{0} {{<<: [{1}], k{0}: 1}}"),
    "a value within itself": "a: &a [*a]\n",
    "two values within each other": "a: &a {b: &b [*a, *a], c: *b}\n",
    "a manifest's args": "spec:\n  pipeline:\n    args:\n" + "".join(f"      {line}\n" for line in laughs(30).splitlines()),
    "long texts": f"a: &a {'x' * 100_000}\nall: [{', '.join(['*a'] * 90)}]\n",
    "the second document": f"a: 1\n---\n{laughs(30)}",
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS.keys())
def test_aliases_that_repeat_without_a_bound_are_refused(text: str) -> None:
    """Within a moment, and by a line: some hundred bytes would be written out as gigabytes."""
    with pytest.raises(ValueError, match=r"^aliases copy line \d+ and others too often: \d{2,6} of \d{2,6} values so far are copies; use fewer"):
        documents(text)


@pytest.mark.parametrize(
    "text",
    [
        laughs(3),
        "base: &base {k: v}\n" + "".join(f"x{n}: {{<<: *base, id: {n}}}\n" for n in range(2000)),
        "word: &w lol\nall: [" + ", ".join(["*w"] * 90) + "]\n",
    ],
    ids=["81 words", "2000 maps that share one", "90 of one word"],
)
def test_aliases_of_a_manifest_that_people_write_are_read(text: str) -> None:
    (found,) = documents(text)
    assert found == yaml.safe_load(text)
