"""The documentation as a site: `mkdocs.yml` and the hook that brings in what pages link outside of docs/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_lab.site import outside

ROOT = Path(__file__).parents[3]
BUILD = [sys.executable, "-m", "mkdocs", "build", "--strict"]  # with --quiet a warning is not counted


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` makes it; a link, an anchor or an entry of the nav that leads nowhere, and a page without an entry, stop it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([*BUILD, "--site-dir", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_first_page_is_the_readme(site: Path) -> None:
    """One text says what Sluice is, here and there."""
    assert (ROOT / "README.md").read_text().splitlines()[0].removeprefix("# ") in (site / "index.html").read_text()


def test_links_out_of_docs_lead_to_pages_of_the_site(site: Path) -> None:
    """Of the folder examples, and of a manifest that is no page."""
    assert 'href="examples/index.html"' in (site / "sinks.html").read_text()
    assert (site / "lab/sluice_lab/demo/demo.yaml").read_text() == (ROOT / "lab/sluice_lab/demo/demo.yaml").read_text()


def test_pages_ask_no_other_host_for_fonts_or_styles(site: Path) -> None:
    """A reader behind a proxy sees the same page. Only diagrams of Mermaid need a script that the theme fetches."""
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:link|img|script)[^>]+(?:src|href)="(?:https?:)?//', page.read_text().replace('rel="canonical"', "")), page


def test_a_copy_of_mermaid_is_put_beside_the_pages(tmp_path: Path) -> None:
    """And loaded by each, so that the theme fetches none."""
    (tmp_path / "copy.js").write_text("// mermaid")
    given = os.environ | {"MERMAID": str(tmp_path / "copy.js")}
    done = subprocess.run([*BUILD, "--site-dir", str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "assets" / "mermaid.min.js").read_text() == "// mermaid"
    assert '<script src="../assets/mermaid.min.js">' in (tmp_path / "site" / "reference" / "status.html").read_text()


@pytest.mark.parametrize("fault", ["[gone](gone.md)", "[gone](operations.md#gone)"])
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path, fault: str) -> None:
    """To a page, and to a heading."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# A\n\n{fault}\n")
    (tmp_path / "docs" / "operations.md").write_text("# B\n\n[back](index.md)\n")
    settings = (ROOT / "mkdocs.yml").read_text()
    kept = re.sub(r"(?ms)^(hooks|nav|not_in_nav):.*?(?=^\S|\Z)", "", settings)
    (tmp_path / "mkdocs.yml").write_text(kept)
    done = subprocess.run([*BUILD, "--site-dir", str(tmp_path / "site")], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "gone" in done.stdout + done.stderr


def test_links_are_led_from_the_repository_to_the_site() -> None:
    """Code is left as it is."""
    page = type("Page", (), {"file": type("File", (), {"src_uri": "index.md"})})
    text = "[a](docs/operations.md#alerts) `[b](docs/operations.md)` [c](https://example.com)"
    assert outside.on_page_markdown(text, page) == "[a](operations.md#alerts) `[b](docs/operations.md)` [c](https://example.com)"
