"""The words in our modules: messages, docstrings and comments, held to the habits of CONTRIBUTING.md (`sentences`)."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

from sluice_lab.places import REPO
from sluice_lab.site.sentences import habits, said

SECTION = re.compile(r"(Args|Attributes|Raises|Returns|Yields|[\w ]+ raises?):")
ENTRY = re.compile(r" {4}(?! )([*]{0,2}\w+(, [*]{0,2}\w+)*: )?")  # of a section, with its name
ITEM = re.compile(r" *([*-]|\d+\.) +")
CITED = re.compile(r'\bdocs/[\w/-]+\.\w+([,;] "[^"]*")*')  # a page, and headings of it, which stay as they are
DIRECTIVE = re.compile(r"(noqa(: [\w, ]+)?|type: ignore(\[[^]]*\])?|fmt: \w+)[ #-]*(?P<reason>.*)")
Line = tuple[int, str]


def messages() -> Iterator[str]:
    """Texts of four words and more in modules, without docstrings. What is put in counts as one word. `field: fact; next: step` is not a sentence."""
    for name in modules():
        for line, text in _texts(ast.parse((REPO / name).read_text())):
            yield from (f"{name}:{line}: {wrong}" for part in text.split("; ") for wrong in said(part, len(part)))


def modules() -> list[str]:
    """Those whose texts are messages, relative to the repository."""
    return sorted(set(_files(habits().messages)) - set(habits().lists))


def documented() -> list[str]:
    """Those whose docstrings and comments are read, relative to the repository."""
    return _files(habits().documented)


def _files(shapes: Iterable[str]) -> list[str]:
    return sorted({str(path.relative_to(REPO)) for shape in shapes for path in REPO.glob(shape)})


def _texts(tree: ast.Module) -> Iterator[Line]:
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node}
    for node in (each for each in ast.walk(tree) if isinstance(each, ast.JoinedStr | ast.Constant)):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts)
        if id(node) not in docs | inner and text.count(" ") > 3:
            yield node.lineno, text


def explanations() -> Iterator[str]:
    """What is wrong with docstrings and comments."""
    for name in documented():
        yield from (f"{name}:{each}" for each in findings((REPO / name).read_text()))


def findings(code: str) -> list[str]:
    """`line: what is wrong: the sentence`, of a module's docstrings and comments."""
    marks = habits().documented_marks
    return [f"{line}: {wrong}" for line, text in (*docstrings(code), *comments(code)) for wrong in said(CITED.sub("X", text), marks)]


def docstrings(code: str) -> Iterator[Line]:
    """Paragraphs, items of lists, and entries of sections, each with its first line. An entry is without its name, and may hold a list."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
            yield from ((node.body[0].lineno + line, part) for line, part in _parts(text.splitlines()))


def _parts(lines: list[str]) -> Iterator[Line]:
    part: list[str] = []
    start, entries = 0, False
    for number, line in enumerate([*lines, ""]):
        text, section = line.strip(), SECTION.fullmatch(line)
        begin = (ENTRY.match(line) if entries else None) or ITEM.match(line)
        if part and (begin or section or not text):
            yield from ((start, each) for each in (" ".join(part).split("; ") if entries else [" ".join(part)]))
            part = []
        entries = entries or section is not None
        if text and not section:
            start = start if part else number
            part.append(line[begin.end() :] if begin else text)


def comments(code: str) -> Iterator[Line]:
    """Each part of a comment up to a semicolon. Those of adjacent lines are one; of a directive, its reason."""
    block: list[Line] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.strip().startswith("#")
            if block and not (alone and block[-1][0] == token.start[0] - 1):
                yield from _joined(block)
                block = []
            block.append((token.start[0], _reason(token.string)))
    yield from _joined(block)


def _reason(comment: str) -> str:
    text = comment.lstrip("# ")
    return found["reason"] if (found := DIRECTIVE.fullmatch(text)) else text


def _joined(block: list[Line]) -> list[Line]:
    return [(block[0][0], part) for part in " ".join(text for _, text in block).split("; ")] if block else []
