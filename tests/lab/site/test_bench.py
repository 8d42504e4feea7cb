"""docs/bench: pages have the figures of batches from there."""

from __future__ import annotations

import pytest

from sluice_lab import places
from sluice_lab.generate import markdown
from sluice_lab.site import bench

PAGES = ("README.md", "docs/performance.md", "docs/plain-pyspark.md", "docs/compare.md", "docs/pools.md")
FILES = bench.kept()


@pytest.mark.parametrize("page", PAGES)
def test_the_figures_of_a_page_are_those_of_the_bench(page: str) -> None:
    """Else: make generate."""
    text = (places.REPO / page).read_text()
    assert bench.filled(text) == text


def test_every_file_is_shown_on_a_page() -> None:
    """A figure that no page shows is measured for nobody."""
    shown = {name for page in PAGES for _, name, _ in markdown.PART.findall((places.REPO / page).read_text())}
    assert shown - {"durations", "summary"} == {"readme", *(bench.TABLES[name].__name__ for name in FILES)}


def test_a_ratio_is_of_neighbours_and_has_its_spread() -> None:
    """A machine may get slower from round to round: both of a pair then do."""
    rounds = [{"4.1": _batch(cpu), "4.3": _batch(cpu / ratio)} for cpu, ratio in ((100.0, 1.0), (400.0, 1.25), (200.0, 2.0))]
    shown = bench.lines({"run": FILES["lines"]["run"], "settings": {}, "figures": {"4": rounds}})
    assert "1.25 (1.00-2.00)" in shown


def _batch(cpu: float) -> dict[str, float]:
    return dict.fromkeys(("ms", "cpu", "jvm", "workers", "driver"), cpu)
