"""A hook of MkDocs: puts scripts beside the pages that the theme would fetch from another host, unpkg.com.

They are Mermaid's, for pages with a diagram, and one that lets the search work in pages that were opened from a folder. SITE_SCRIPTS names the folder
that has them (`downloads.site_scripts`; `make site` sets it). This module imports no part of Sluice: MkDocs loads it as a file.
"""

import os
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

MERMAID, WORKER = "mermaid.js", "iframe-worker.js"
DIAGRAM = 'class="mermaid"'


def on_config(config: Any) -> Any:
    """The plugin for the search in a folder adds no script where one of this name is given.

    Raises:
        PluginError: SITE_SCRIPTS is not set.
    """
    if not os.environ.get("SITE_SCRIPTS"):
        raise PluginError("SITE_SCRIPTS names no folder with the scripts that pages need; run `make site`, which fetches them from npm")
    config.extra["polyfills"] = [_place(WORKER)]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the scripts."""
    folder = Path(os.environ["SITE_SCRIPTS"])
    for name in (MERMAID, WORKER):
        files.append(File.generated(config, _place(name), content=(folder / name).read_bytes()))
    return files


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The theme fetches nothing where Mermaid is on the page before it."""
    if DIAGRAM not in output:
        return output
    return output.replace("</head>", f'<script src="{get_relative_url(_place(MERMAID), page.url)}"></script></head>', 1)


def _place(name: str) -> str:
    return f"assets/{name}"
