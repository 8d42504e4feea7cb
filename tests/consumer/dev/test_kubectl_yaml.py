"""What kubectl makes of plain texts: answers of sigs.k8s.io/yaml 1.4.0, recorded 2026-11-26."""

from __future__ import annotations

import json

import pytest

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
    """It is read all the same."""
    assert documents("{a: [y, 12:30]}") == [{"a": [True, "12:30"]}]
