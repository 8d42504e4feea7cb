"""A hook of MkDocs: brings what pages link outside of docs/ into the site, and leads their links to it.

Pages of the repository link each other by relative paths, such as `../examples/README.md`. MkDocs takes one folder only. This module imports no part
of Sluice: MkDocs loads it as a file.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
HOME = "README.md"  # of the repository: the site's first page
FIRST = "index.md"
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
CODE = re.compile(r"(?ms)^( *)```.*?^\1```$|`[^`\n]+`")


def on_files(files: Files, config: Any) -> Files:
    """Adds README.md, and what it and the pages link, as far as pages of pages lead."""
    seen = set(files.src_uris)
    waiting = [HOME, *(posixpath.join("docs", name) for name in files.src_uris)]
    while waiting:
        page = waiting.pop()
        if not page.startswith("docs/") and site_name(page) not in seen:
            seen.add(site_name(page))
            files.append(File.generated(config, site_name(page), abs_src_path=str(ROOT / page)))
        if page.endswith(".md"):
            waiting += [name for name in linked(page) if not name.startswith("docs/") and site_name(name) not in seen]
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrites links of one page from the repository's folders to the site's."""
    here = repository_name(page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        target = resolved(here, match[1])
        return match[1] if target is None else posixpath.relpath(site_name(target), posixpath.dirname(page.file.src_uri) or ".")

    parts, place = [], 0
    for code in CODE.finditer(markdown):
        parts += [LINK.sub(moved, markdown[place : code.start()]), code[0]]
        place = code.end()
    return "".join([*parts, LINK.sub(moved, markdown[place:])])


def linked(page: str) -> Iterator[str]:
    """Files of the repository that a page links, by their paths in it."""
    text = CODE.sub("", (ROOT / page).read_text())
    yield from filter(None, (resolved(page, link) for link in LINK.findall(text)))


def resolved(page: str, link: str) -> str | None:
    """Path in the repository of a page's relative link; None: there is no such file, and MkDocs says so."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return target if (ROOT / target).is_file() and not target.startswith("..") else None


def site_name(path: str) -> str:
    """Where a file of the repository is in the site."""
    if path == HOME:
        return FIRST
    return path.removeprefix("docs/")


def repository_name(name: str) -> str:
    """Where a file of the site is in the repository."""
    if name == FIRST:
        return HOME
    return posixpath.join("docs", name) if (DOCS / name).is_file() else name
