"""The documentation as a site: `mkdocs.yml` and the hook that brings in what pages link outside of docs/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_lab.machine import downloads
from sluice_lab.site import outside

ROOT = Path(__file__).parents[3]
OTHER_HOST = re.compile(r'<(?:link|img|script|iframe|source|object)[^>]+(?:src|href|data)="(?:https?:)?//')
BUILD = [sys.executable, "-m", "mkdocs", "build", "--strict"]  # with --quiet a warning is not counted


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` makes it; a link, an anchor or an entry of the nav that leads nowhere, and a page without an entry, stop it."""
    folder = tmp_path_factory.mktemp("site")
    given = os.environ | {"SITE_SCRIPTS": str(downloads.site_scripts())}
    done = subprocess.run([*BUILD, "--site-dir", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_first_page_is_the_readme(site: Path) -> None:
    assert (ROOT / "README.md").read_text().splitlines()[0].removeprefix("# ") in (site / "index.html").read_text()


def test_links_out_of_docs_lead_to_pages_of_the_site(site: Path) -> None:
    assert 'href="examples/index.html"' in (site / "sinks.html").read_text()
    assert (site / "lab/sluice_lab/demo/demo.yaml").read_text() == (ROOT / "lab/sluice_lab/demo/demo.yaml").read_text()


def test_pages_ask_no_other_host_for_scripts_styles_or_images(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not OTHER_HOST.search(page.read_text().replace('rel="canonical"', "")), page


def test_styles_ask_no_other_host(site: Path) -> None:
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", style.read_text()), style


def test_a_page_with_a_diagram_has_its_script_and_no_other_has(site: Path) -> None:
    """It is large, and the theme fetches one where there is none."""
    for page in site.rglob("*.html"):
        scripts = re.findall(r'<script src="([^"]+/)?mermaid\.js"', text := page.read_text())
        assert len(scripts) == int('class="mermaid"' in text), page
        assert all((page.parent / folder / "mermaid.js").resolve().is_file() for folder in scripts), page
    assert 'class="mermaid"' in (site / "reference" / "status.html").read_text()


def test_the_search_works_in_pages_from_a_folder(site: Path) -> None:
    """A browser keeps a page's worker from files: the index is a script, and the worker a frame."""
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = ")
    assert '<script src="../assets/iframe-worker.js">' in (site / "reference" / "status.html").read_text()
    assert (site / "assets" / "iframe-worker.js").stat().st_size > 500


def test_without_the_scripts_there_is_no_site(tmp_path: Path) -> None:
    """Pages would ask another host for them. The error says how to get them."""
    without = {name: value for name, value in os.environ.items() if name != "SITE_SCRIPTS"}
    done = subprocess.run([*BUILD, "--site-dir", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False, env=without)
    assert done.returncode == 1
    assert "run `make site`" in done.stdout + done.stderr


@pytest.mark.parametrize("fault", ["[gone](gone.md)", "[gone](operations.md#gone)"])
def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path, fault: str) -> None:
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
    page = type("Page", (), {"file": type("File", (), {"src_uri": "index.md"})})
    text = "[a](docs/operations.md#alerts) `[b](docs/operations.md)` [c](https://example.com)"
    assert outside.on_page_markdown(text, page) == "[a](operations.md#alerts) `[b](docs/operations.md)` [c](https://example.com)"
