"""Finds a mistyped `pipeline.entrypoint` without running it, before there is a table, a lease or a Spark session.

The driver imports the module, when Spark runs: a column at its top level (`F.col("id")`) needs a session. Here its source is only found and read.
What cannot be judged so is left to an import: one that is tried in another process before a start (`checks.importing`), and the driver's.
"""

from __future__ import annotations

import re
import symtable
import sys
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec

from sluice_checkpoints.errors import Refused
from sluice_consumer.spark.entrypoint import ENTRYPOINT

# Names that a module gets in other ways than by a definition, an assignment or an import.
UNKNOWN_NAMES = re.compile(r"import\s*\(?\s*\*|__getattr__|globals\(|\bvars\(|\bexec\(|\bsetattr\(|\bglobal\b|sys\.modules|__path__")


def check(entrypoint: str, field: str = ENTRYPOINT) -> None:
    """Makes sure that there is such a module, and such a name in it, as far as that can be seen from its source.

    Raises:
        Refused: there is none, or the source is no Python.
    """
    module, _, name = entrypoint.partition(":")
    spec = _find(f"{field}: {entrypoint}", module)
    source = _source(spec) if spec else None
    if spec is None or source is None or UNKNOWN_NAMES.search(source):
        return
    try:
        names = symtable.symtable(source, spec.origin or module, "exec")
    except SyntaxError as error:
        raise Refused(f"{field}: {entrypoint}: {error.msg} in {spec.origin}, line {error.lineno}") from error
    if not _binds(names, name):
        raise Refused(f"{field}: module {module} has no {name}")


def _find(named: str, module: str) -> ModuleSpec | None:
    """Finds a module below packages that are not imported, unlike `importlib.util.find_spec`; None where a package may make it up."""
    spec: ModuleSpec | None = None
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        package, name = spec, ".".join(parts[:depth])
        spec = _spec(name, package)
        if spec is None:
            source = _source(package) if package else ""
            if source is None or UNKNOWN_NAMES.search(source):
                return None
            raise Refused(f"{named}: there is no module {name}; is it in the image, or in the folder where you run this?")
    return spec


def _spec(name: str, package: ModuleSpec | None) -> ModuleSpec | None:
    path = package.submodule_search_locations if package else None
    if package is not None and path is None:
        return None
    specs = (finder.find_spec(name, path, None) for finder in sys.meta_path)
    return next((spec for spec in specs if spec is not None), None)


def _source(spec: ModuleSpec) -> str | None:
    """None: it is compiled, or read by another importer. A package without an `__init__` has an empty one."""
    if spec.loader is None:
        return ""
    try:
        return spec.loader.get_source(spec.name) if isinstance(spec.loader, InspectLoader) else None
    except (ImportError, UnicodeError):
        return None


def _binds(names: symtable.SymbolTable, name: str) -> bool:
    try:
        symbol = names.lookup(name)
    except KeyError:
        return False
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
