"""A hook of MkDocs: puts Mermaid's script beside the pages, if MERMAID names a copy of it, so that diagrams need no other host.

Without it the theme fetches the script from unpkg.com, on pages with a diagram only. The file is 3.5 MB and in no commit. This module imports no part
of Sluice: MkDocs loads it as a file.
"""

import os
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

NAME = "assets/mermaid.min.js"


def on_config(config: Any) -> Any:
    """The theme fetches nothing where the script is on the page before it."""
    if os.environ.get("MERMAID"):
        config.extra_javascript.append(NAME)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the script.

    Raises:
        FileNotFoundError: MERMAID names no file.
    """
    if path := os.environ.get("MERMAID"):
        files.append(File.generated(config, NAME, content=Path(path).read_bytes()))
    return files
