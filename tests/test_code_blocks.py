"""Code in the documents: manifests, JSON and Python are read by what would read them, and commands name what exists."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import click
import page_blocks
import pytest
import yaml
from page_blocks import ROOT

from sluice_checkpoints.cli.main import main as tables
from sluice_kubectl.cli.group import program as ours
from sluice_lab.generate import crd
from sluice_operator.resource.fields import Spec

LISTED = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
TRACKED = subprocess.run(LISTED, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
PAGES = [name for name in TRACKED if name.split("/")[0] in {"docs", "examples", "README.md", "CONTRIBUTING.md", "SECURITY.md"}]
RUNBOOKS = "docs/runbooks.md"
COMMANDS = {"sluice": (), "kubectl sluice": (), "python -m sluice_checkpoints": (), "python -m sluice_consumer": ("run",)}
TARGETS = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
VERBS = {
    "annotate", "apply", "auth", "create", "debug", "delete", "describe", "events", "exec", "explain", "get", "krew", "label", "logs",
    "patch", "port-forward", "replace", "rollout", "scale", "set", "sluice", "top", "version", "wait",
}  # fmt: skip
RESOURCE = {"kc", "kinesisconsumer", "kinesisconsumers"}
KINDS = {"configmap", "deployment", "job", "lease", "namespace", "node", "pod", "pods", "role", "secret", "serviceaccount", "application"}


def blocks(*languages: str) -> list[Any]:
    found = [(name, each.text, each.language) for name in PAGES for each in page_blocks.of(name)]
    return [
        pytest.param(name, text, id=f"{name}:{text.splitlines()[0][:40]}") for name, text, language in found if language in languages and text.strip()
    ]


def lines(*programs: str) -> list[Any]:
    """Page and arguments of each command line that begins with one of these, in blocks of shell or of nothing, and in a step of a runbook."""
    found = []
    for name, text in [*(param.values for param in blocks("sh", "console", "")), *((RUNBOOKS, step) for step in steps())]:
        for line in re.sub(r"\\\n\s*", "", str(text)).splitlines():
            said = line.strip().removeprefix("$ ").removeprefix(".venv/bin/")
            if program := next((program for program in programs if re.match(rf"{program} [-a-z]", said)), None):
                found.append(pytest.param(program, said, id=f"{name}:{said[:60]}"))
    return found


def steps() -> list[str]:
    return re.findall(r"`([^`\n]+)`", page_blocks.BLOCK.sub("", (ROOT / RUNBOOKS).read_text()))


def words(line: str) -> list[str]:
    found = shlex.split(line, comments=True)
    end = next((place for place, word in enumerate(found) if word in {"|", "&&", "||", ";", ">", "2>"}), len(found))
    return found[:end]


@pytest.mark.parametrize(("page", "text"), blocks("python"))
def test_python_can_be_read(page: str, text: str) -> None:
    ast.parse(text, page)


@pytest.mark.parametrize(("page", "text"), blocks("json"))
def test_json_can_be_read(page: str, text: str) -> None:
    assert json.loads(text), page


def manifests() -> list[Any]:
    return [pytest.param(each.values[0], document, id=each.id) for each in blocks("yaml") for document in yaml.safe_load_all(str(each.values[1]))]


@pytest.mark.parametrize(("page", "document"), manifests())
def test_a_manifest_can_be_read_and_a_consumer_is_taken_by_the_operator(page: str, document: dict[str, Any]) -> None:
    assert isinstance(document, dict | list), page
    if isinstance(document, list):
        return
    if document.get("kind") == "KinesisConsumer":
        Spec.model_validate(document["spec"])
    elif set(document) == {"spec"} and isinstance(document["spec"], dict):
        known(document["spec"], crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec")


def known(part: Any, schema: dict[str, Any], place: str) -> None:
    if not isinstance(part, dict) or "properties" not in schema:
        return
    for name, value in part.items():
        assert name in schema["properties"], f"{place}.{name}"
        known(value, schema["properties"][name], f"{place}.{name}")


@pytest.mark.parametrize(("program", "line"), lines(*COMMANDS))
def test_a_command_of_ours_has_the_options_that_it_is_given(program: str, line: str) -> None:
    """Placeholders in brackets stand for what is optional."""
    found = words(re.sub(r"[\[\]…]", " ", line).replace("|", " "))[len(program.split()) :]
    command: click.Command = tables if program == "python -m sluice_checkpoints" else ours
    said = found if found and not found[0].startswith("-") else [*COMMANDS[program], *found]
    for at, word in enumerate(said):
        if isinstance(command, click.Group) and word in command.list_commands(context := click.Context(command)):
            command = command.resolve_command(context, said[at:])[1] or command
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help", "-h", "--version"}
    assert [word.split("=")[0] for word in found if word.startswith("-") and word.split("=")[0] not in options] == [], line
    assert command.params, line


@pytest.mark.parametrize(("program", "line"), lines("make"))
def test_a_target_of_make_exists(program: str, line: str) -> None:
    assert {word for word in words(line)[1:] if "=" not in word} <= TARGETS, program


@pytest.mark.parametrize(("program", "line"), lines("kubectl"))
def test_kubectl_is_asked_for_what_it_knows(program: str, line: str) -> None:
    found = words(line)[1:]
    verb = next(word for place, word in enumerate(found) if not word.startswith("-") and found[place - 1] not in {"-n", "--namespace"})
    assert verb in VERBS, program
    kinds = {word.split("/")[0] for word in found if re.fullmatch(r"k[a-z]*c[a-z]*/\S+", word)}
    assert kinds <= RESOURCE | KINDS
    if verb == "patch" and RESOURCE & {word.split("/")[0] for word in found}:
        patch = json.loads(found[found.index("-p") + 1])
        known(patch.get("spec"), crd.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec")


def test_blocks_are_found() -> None:
    """Else the claims above would be of nothing."""
    assert len(blocks("python")) > 5
    assert len(blocks("yaml")) > 10
    assert len(lines("kubectl")) > 20
    assert len(lines(*COMMANDS)) > 15


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yaml")), ids=lambda path: path.name)
def test_an_issue_form_can_be_read(path: Path) -> None:
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form)
    assert all(field["attributes"]["label"] for field in form["body"])
