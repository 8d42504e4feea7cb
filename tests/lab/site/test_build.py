"""The documentation as a site: `mkdocs.yml` and the hook that brings in what pages link outside of docs/."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_lab.machine import downloads

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


def test_links_out_of_docs_lead_to_pages_of_the_site(site: Path) -> None:
    assert 'href="examples/index.html"' in (site / "sinks.html").read_text()
    assert (site / "lab/sluice_lab/demo/demo.yaml").read_text() == (ROOT / "lab/sluice_lab/demo/demo.yaml").read_text()


def test_pages_ask_no_other_host_for_scripts_styles_or_images(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not OTHER_HOST.search(page.read_text()), page
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
