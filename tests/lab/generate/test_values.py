"""The table of values in the chart's README is what values.yaml says, and says something of every value."""

from __future__ import annotations

from pathlib import Path

from sluice_lab.generate.markdown import PART
from sluice_lab.generate.values import Value, filled, rendered, values

CHART = Path(__file__).parents[3] / "charts" / "sluice"
SOURCE = (CHART / "values.yaml").read_text()
EVIDENT = {"enabled", "interval", "annotations"}
"""Keys whose block says it all."""

EXAMPLE = """\
# Of no value: an empty line follows.

# A block,
# on two lines.
block:
  # Above.
  above: 1
  behind: "a # b"  # behind it
  # Both,
  both: [1, 2]  # and more
  bare: {}
whole:  # as one
  a: {b: c}
  d: null
plain: 5
"""


def test_a_value_is_described_above_or_behind_its_key() -> None:
    assert values(EXAMPLE) == [
        Value("block", None, "A block, on two lines."),
        Value("block.above", "1", "Above."),
        Value("block.behind", '"a # b"', "behind it"),
        Value("block.both", "[1, 2]", "Both, and more"),
        Value("block.bare", "{}", ""),
        Value("whole", "{a: {b: c}, d: null}", "as one"),
        Value("plain", "5", ""),
    ]
    assert values("") == []


def test_a_bar_does_not_end_a_cell() -> None:
    """Markdown would begin the next column."""
    assert rendered("a: 1  # b | c").splitlines()[-1] == "| `a` | `1` | b \\| c |"


def test_the_readme_has_the_values_of_now() -> None:
    """Else: `make generate`."""
    page = (CHART / "README.md").read_text()
    assert len(PART.findall(page)) == 1
    assert filled(page, SOURCE) == page


def test_every_value_is_described() -> None:
    found = values(SOURCE)
    blocks = {value.path for value in found if value.text}
    silent = [value.path for value in found if not value.text]
    assert [path for path in silent if path.rpartition(".")[2] not in EVIDENT or path.rpartition(".")[0] not in blocks] == []
