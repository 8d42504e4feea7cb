"""Whatever is in a kubeconfig, the program ends with one sentence that says what to do, and never with a traceback."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_kubectl.api.errors import CommandError
from sluice_kubectl.api.kubeconfig import Target, connect
from sluice_kubectl.cli.group import program

Json = dict[str, Any]
GOOD: Json = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "one",
    "clusters": [{"name": "one", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "me", "user": {"token": "abc"}}],
    "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
}


def cluster(**fields: Any) -> bytes:
    return yaml.safe_dump({**GOOD, "clusters": [{"name": "one", "cluster": fields}]}).encode()


def user(**fields: Any) -> bytes:
    return yaml.safe_dump({**GOOD, "users": [{"name": "me", "user": fields}]}).encode()


BROKEN = {
    "binary": bytes(range(256)),
    "utf-16": yaml.safe_dump(GOOD).encode("utf-16"),
    "empty": b"",
    "a list": b"- a\n",
    "a string": b"just text",
    "a number": b"5",
    "no contexts": b"{current-context: one}",
    "contexts of null": b"{current-context: one, contexts: [null], clusters: [null], users: [null]}",
    "contexts that are text": b"{current-context: one, contexts: abc}",
    "nested": b"[" * 3000,
    "no server": cluster(),
    "a server that is a list": cluster(server=["http://x"]),
    "ftp": cluster(server="ftp://127.0.0.1"),
    "no scheme": cluster(server="127.0.0.1:6443"),
    "no host": cluster(server="https://"),
    "half an address": cluster(server="https://[::1"),
    "a port that is none": cluster(server="https://x:port"),
    "no certificate": cluster(**{"server": "https://127.0.0.1:1", "certificate-authority-data": "!!!"}),
    "a certificate that is not there": cluster(**{"server": "https://127.0.0.1:1", "certificate-authority": "/absent.pem"}),
    "a proxy that is none": cluster(**{"server": "http://127.0.0.1:1", "proxy-url": "no proxy"}),
    "a token of two lines": user(token="a\nb"),
    "a token that is no ASCII": user(token="\N{SNOWMAN}"),
    "a user that is text": yaml.safe_dump({**GOOD, "users": [{"name": "me", "user": "text"}]}).encode(),
    "exec without a command": user(exec={}),
    "exec that is not there": user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "/absent"}),
    "auth-provider that is none": user(**{"auth-provider": {"name": "oidc"}}),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_kubeconfig_is_one_sentence_with_a_next_step(tmp_path: Path, broken: str) -> None:
    file = tmp_path / "config"
    file.write_bytes(BROKEN[broken])
    answer = CliRunner().invoke(program, ("status", "--kubeconfig", str(file)), env={"COLUMNS": "200"})
    assert answer.exit_code == 1, answer.exception
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1, answer.stderr
    assert answer.stderr.startswith("CommandError (exit 1) ")
    assert "; next: " in answer.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    answer = run("status", "--kubeconfig", str(tmp_path / "absent"))
    assert answer.returncode == 1
    assert str(tmp_path / "absent") in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_a_folder_is_no_kubeconfig(tmp_path: Path) -> None:
    assert "; next: " in run("status", "--kubeconfig", str(tmp_path)).stderr


def test_words_of_a_credential_plugin_that_fails_are_shown(tmp_path: Path) -> None:
    """It says what to do: `aws sso login`, say. Its controls do not reach the terminal."""
    plugin = tmp_path / "plugin"
    plugin.write_text("#!/bin/sh\nprintf 'session expired:\\033[2J run aws sso login\\n' >&2\nexit 255\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    file = tmp_path / "config"
    file.write_bytes(user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}))
    answer = run("status", "--kubeconfig", str(file))
    assert answer.returncode == 1
    assert "run aws sso login" in answer.stderr
    assert "255" in answer.stderr
    assert "\x1b" not in answer.stderr
    assert answer.stderr.count("\n") == 1


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    part=st.sampled_from(("clusters", "users", "contexts", "current-context", "cluster", "user", "context")),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("name", "server", "token", "cluster", "user")), inner, max_size=3)
        ),
        max_leaves=5,
    ),
)
def test_any_value_anywhere_connects_or_is_refused(tmp_path: Path, part: str, value: Any) -> None:
    body: Json = yaml.safe_load(yaml.safe_dump(GOOD))
    if part in body:
        body[part] = value
    else:
        body[f"{part}s"][0][part] = value
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(body))
    try:
        connect(Target(kubeconfig=str(file)))
    except CommandError as error:
        assert "; next: " in str(error)  # noqa: PT017 - or it connects


def test_a_context_by_name_needs_no_present_one(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump({key: value for key, value in GOOD.items() if key != "current-context"}))
    assert connect(Target(kubeconfig=str(file), context="one"))[1] == "default"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    found = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    command = [sys.executable, "-m", "sluice_kubectl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**found, "COLUMNS": "200"}, stdin=subprocess.DEVNULL)
