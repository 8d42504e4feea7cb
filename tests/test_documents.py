"""What the documents and the code say of each other: headings that are cited exist, and so do files and rooms that are named."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sluice_lab.generate.markdown import slug

ROOT = Path(__file__).parents[1]
TRACKED = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
PACKAGES = ["consumer/sluice_checkpoints", "consumer/sluice_consumer", "operator/sluice_operator", "operator/sluice_kubectl"]
TEXTS = [name for name in TRACKED if name.endswith((".py", ".md", ".yaml", ".toml", ".lua")) and not name.startswith("tests/operator/released/")]
CITED = re.compile(r'\b(?:docs/)?((?:[a-z-]+/)?[a-z-]+\.md),?\s+(?:#\s+)?"([^"]+)"')  # docs/protocol.md, "A batch"
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+\.md)?(?:#([^)]+))?\)")
PATH = re.compile(r"`((?:consumer|operator|tests|lab|docs|charts|crds|constraints)/[\w./-]+)`")


def headings(document: str) -> set[str]:
    path = ROOT / document if (ROOT / document).exists() else ROOT / "docs" / document
    return {heading.replace("`", "").strip() for heading in HEADING.findall(path.read_text())}


def cited() -> list[tuple[str, str, str]]:
    """File, document and heading of each citation; several headings may follow one document: "A" and "B"."""
    found = []
    for name in TEXTS:
        text = re.sub(r"\s*\n\s*(?:#\s*)?", " ", (ROOT / name).read_text())
        found += [(name, match[1], match[2]) for match in CITED.finditer(text)]
    return found


@pytest.mark.parametrize(("name", "document", "heading"), sorted(set(cited())))
def test_a_heading_that_is_cited_exists(name: str, document: str, heading: str) -> None:
    assert heading in headings(document), name


@pytest.mark.parametrize(("page", "ledger"), [("protocol.md", "tests/sim/simulation"), ("architecture.md", "tests/sim/operator/steering")])
def test_a_page_lists_the_invariants_of_its_ledger(page: str, ledger: str) -> None:
    """All of them, once, and no other: what the simulation claims is what a reader is told."""
    tree = ast.parse((ROOT / ledger / "ledger.py").read_text())
    (judged,) = (ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "INVARIANTS")
    (table,) = re.findall(r"^\| name \| claim \|\n\|---\|---\|\n((?:\|.*\n)+)", (ROOT / "docs" / page).read_text(), re.MULTILINE)
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(judged)


def mutated() -> list[str]:
    """The rules of docs/protocol.md and docs/migration.md that mutants of the simulation take out, each behind the heading of its section."""
    calls = [
        node
        for path in sorted((ROOT / "tests" / "sim" / "simulation").glob("mutant_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "mutant"
    ]
    return [str(call.args[1].value) for call in calls if isinstance(call.args[1], ast.Constant)]


@pytest.mark.parametrize("rule", mutated())
def test_a_mutant_names_the_section_whose_rule_it_takes_out(rule: str) -> None:
    assert rule.split(":", maxsplit=1)[0] in headings("protocol.md") | headings("migration.md")


@pytest.mark.parametrize("name", [name for name in TRACKED if name.endswith(".md")])
def test_links_lead_somewhere(name: str) -> None:
    for document, anchor in LINK.findall((ROOT / name).read_text()):
        if "://" in document:
            continue
        target = (ROOT / name).parent / document if document else ROOT / name
        assert target.exists(), document
        if anchor:
            assert anchor in {slug(heading) for heading in HEADING.findall(target.read_text())}, (document, anchor)


@pytest.mark.parametrize("name", [name for name in TRACKED if name.endswith(".md")])
def test_a_row_of_a_table_has_as_many_cells_as_its_head(name: str) -> None:
    """A cell that is lost moves what follows it under another head."""
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(), flags=re.DOTALL)
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        bars = [len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in rows.splitlines()]
        assert set(bars) == {bars[0]}, rows.splitlines()[next(index for index, bar in enumerate(bars) if bar != bars[0])]


@pytest.mark.parametrize("name", [name for name in TRACKED if name.endswith(".md") and name != "CHANGELOG.md"])
def test_files_that_are_named_exist(name: str) -> None:
    """In documents; a `*` stands for several, and so does the name `X` of what would be new."""
    for path in PATH.findall((ROOT / name).read_text()):
        assert list(ROOT.glob(re.sub(r"(?<=[/_-])X(?=\.)", "*", path.rstrip("/")))), path


@pytest.mark.parametrize("package", PACKAGES)
def test_architecture_shows_every_room(package: str) -> None:
    """The trees of docs/architecture.md: each room in a line of its own, and no other."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    name = package.split("/")[1]
    tree = re.search(rf"^{name} .*\n((?:  .*\n)+)", page, re.MULTILINE)
    assert tree is not None
    shown = set(re.findall(r"\b([a-z_]+)/(?= )", tree[1]))
    rooms = {path.name for path in (ROOT / package).iterdir() if (path / "__init__.py").exists()}
    assert shown == rooms
    modules = set(re.findall(r"\b(\w+)\.py\b", tree[1]))
    assert modules <= {path.stem for path in (ROOT / package).glob("*.py")}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_room_says_in_three_lines_what_why_and_what_not(package: str) -> None:
    for path in sorted((ROOT / package).glob("*/__init__.py")):
        told = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")
        assert len([line for line in told if line]) == 3, path


NAMED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`")
RAISED = re.compile(r"^Raises:\n((?: .*\n?|\n)+)", re.MULTILINE)
RAISES = re.compile(r"\b([A-Z][a-z]+(?:[A-Z]\w+)*)(?:, \w+)*:")
OF_OTHERS = set(
    re.findall(
        r"\w+",
        """
    AggregatedRecord AggregatorUtil ApplyCleanupOptions AvailableNow Backend BasicExecutorFeatureStep CoarseGrainedSchedulerBackend DynamoCheckpoint
    DynamoDBLeaseSerializer DynamoUtils ExtendedSequenceNumber FieldManagers GetLease HasPrefix KinesisDataFetcher KinesisShardManager
    LeaseCleanupManager Long ParamType PoolManager ProcessTask PythonWorkerFactory SchemaNotFoundError See ShardRecordProcessorCheckpointer
    StatusTracker Trigger _nodeid adjustExecutors adjustTargetNumExecutors capture cleanupLeaseForCompletedShard commitInfo compareTo convert create
    credential_process diffShardIDs filterAndGetMaxExtendedSequenceNumber finally kubernetes_sd_configs linking readCheckpoint request
    resetAfterSeconds rollback_to_snapshot safeGetLong ssa to_numpy valueOf zipWithUniqueId
    """,
    )
)
"""Names in docstrings that are of other programs, and of what they write."""
WHERE = re.compile(
    r"(?<![\w/.~$:@-])((?:consumer|operator|tests|lab|docs|charts|crds|constraints|examples)/[\w./*-]*"
    r"\.(?:py|md|toml|yaml|yml|json|txt|xml|sh|tpl))\b"
)
CODE = [
    name for name in TRACKED if name.endswith((".py", "Dockerfile", "Makefile", ".tpl", ".sh")) and not name.startswith("tests/operator/released/")
]
MADE_UP = {"tests/a-b/test_it.py", "tests/gone/test_gone.py"}  # what tests of our tools give them


def documented(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from documented(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def spelled(text: str, told: Iterable[ast.Constant]) -> set[str]:
    lines = text.splitlines()
    for each in told:
        lines[each.lineno - 1 : each.end_lineno] = [""] * ((each.end_lineno or 0) - each.lineno + 1)
    return set(re.findall(r"\w+", re.sub(r"(?m)(^|  )# .*$", "", "\n".join(lines))))


def named_in(text: str) -> set[str]:
    raised = {name for part in RAISED.findall(f"{text}\n") for name in RAISES.findall(part)}
    return {part for name in NAMED.findall(text) for part in name.split(".")} | raised


def test_a_name_in_a_docstring_is_one_that_the_code_has() -> None:
    """Else it was renamed there, and not here."""
    known, named = OF_OTHERS.union(dir(builtins)), set[tuple[str, str]]()
    for name in (name for name in CODE if name.endswith(".py")):
        text = (ROOT / name).read_text()
        told = list(documented(ast.parse(text)))
        known |= {*Path(name).with_suffix("").parts, *spelled(text, told)}
        named |= {(name, word) for each in told for word in named_in(inspect.cleandoc(str(each.value)))}
    assert {(name, word) for name, word in named if word not in known} == set()


@pytest.mark.parametrize("name", [name for name in CODE if WHERE.search((ROOT / name).read_text())])
def test_files_that_code_names_exist(name: str) -> None:
    """In comments, docstrings and texts, the Dockerfile's and the Makefile's too; a `*` stands for several."""
    for path in set(WHERE.findall((ROOT / name).read_text())) - MADE_UP:
        assert list(ROOT.glob(path)), path
